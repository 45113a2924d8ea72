"""An environment that remembers what a process did."""

import pytest

from ordercast.testing import RecordingEnv


@pytest.fixture
def env() -> RecordingEnv:
    return RecordingEnv()
