"""Tools for tests of protocols: drive a process by hand, and look at what it does."""

from ordercast.testing.process_driver import ProcessDriver
from ordercast.testing.recording_env import RecordingEnv

__all__ = ["ProcessDriver", "RecordingEnv"]
