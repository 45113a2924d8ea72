"""For all tests: Hypothesis without deadlines, since machines are busy and time is no property here."""

import os

from hypothesis import settings

settings.register_profile("steady", deadline=None)
settings.load_profile("steady")


def pytest_xdist_auto_num_workers() -> int:
    """Three workers for two cores: a test of live hosts waits more than it works."""
    cores = len(os.sched_getaffinity(0))
    return cores + (cores + 1) // 2
