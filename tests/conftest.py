"""For all tests: which of them share a worker, and Hypothesis without deadlines, since machines are busy."""

import os
from pathlib import PurePosixPath

import pytest
from hypothesis import settings
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

settings.register_profile("steady", deadline=None)
settings.load_profile("steady")

TOGETHER = {
    "tests/spark": "Spark",
    "tests/check/test_registry.py": "names in the sources",
    "tests/trace/test_deliveries.py": "names in the sources",
    "tests/scale": "compiled functions",
    "tests/cli/test_epto_simulate.py": "compiled functions",
    "tests/docs/test_epto_page.py": "compiled functions",
    "tests/experiments/test_epto.py": "compiled functions",
}
"""What the tests of a folder or file share that takes long to make, so that they run in one worker."""


class Scheduling(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    """Gives each test to the next free worker, but those that share something to the same one.

    The groups of `--dist=loadgroup` have no effect: pytest 9.2 keeps the names of tests elsewhere than xdist
    3.8 writes them.
    """

    def _split_scope(self, nodeid: str) -> str:
        file = PurePosixPath(nodeid.split("::")[0])
        return TOGETHER.get(str(file)) or TOGETHER.get(str(file.parent)) or nodeid


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Scheduling:
    """Spread the tests over the workers."""
    return Scheduling(config, log)


def pytest_xdist_auto_num_workers() -> int:
    """Two workers for each core: a test of live hosts waits more than it works."""
    return 2 * len(os.sched_getaffinity(0))
