"""An environment that remembers what a process did."""

import pytest
from hypothesis import settings

from ordercast.testing import RecordingEnv

settings.register_profile("steady", deadline=None)  # machines are busy, and time is no property here
settings.load_profile("steady")


@pytest.fixture
def env() -> RecordingEnv:
    return RecordingEnv()
