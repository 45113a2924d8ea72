"""An environment that remembers what a process did."""

from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import settings

from ordercast.core import Delivery, Env, Message, Nanos, NodeId

settings.register_profile("steady", deadline=None)  # machines are busy, and time is no property here
settings.load_profile("steady")


class RecordingEnv(Env):
    def __init__(self) -> None:
        self.me, self.now, self.rng = 0, 0, Random(0)
        self.done: list[tuple[object, ...]] = []

    def send(self, to: NodeId, message: Message) -> None:
        self.done.append(("send", to, message))

    def multicast(self, to: Sequence[NodeId], message: Message) -> None:
        self.done.append(("multicast", tuple(to), message))

    def set_timer(self, name: str, after: Nanos) -> None:
        self.done.append(("set", name, after))

    def cancel_timer(self, name: str) -> None:
        self.done.append(("cancel", name))

    def deliver(self, delivery: Delivery) -> None:
        self.done.append(("deliver", delivery))

    def save(self, name: str, state: bytes | None) -> None:
        self.done.append(("save", name, state))


@pytest.fixture
def env() -> RecordingEnv:
    return RecordingEnv()
