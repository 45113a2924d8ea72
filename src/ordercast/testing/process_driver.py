"""Drives a process by hand: messages arrive and time passes when a test says so."""

from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

from ordercast.core import Delivery, Env, LocalError, Message, Nanos, NodeId, Process
from ordercast.testing.recording_env import RecordingEnv

P = TypeVar("P", bound=Process)


class ProcessDriver(Generic[P]):
    """A process, started, and its recording environment.

    driver = ProcessDriver(lambda env: Receiver(env, ...), me=3)
    driver.receive(7, Request(...))
    assert driver.take_sent() == [(7, Answer(...))]
    """

    def __init__(
        self,
        make: Callable[[Env], P],
        me: NodeId = 0,
        now: Nanos = 0,
        saved: Mapping[str, bytes] | None = None,
        env: RecordingEnv | None = None,
    ) -> None:
        """Make the process, and start it with the state that an earlier life had `saved`."""
        self.env = env or RecordingEnv(me, now)
        self.env.saved.update(saved or {})
        self.process = make(self.env)
        self.process.on_start(dict(self.env.saved))

    def receive(self, source: NodeId, *messages: Message) -> None:
        """Let messages arrive, one after the other."""
        for message in messages:
            self.process.on_message(source, message)

    def fire(self, name: str) -> None:
        """Let a timer go off now, even if it is not due yet; it must be armed."""
        if name not in self.env.timers:
            armed = ", ".join(sorted(self.env.timers)) or "none"
            raise LocalError(f"the timer '{name}' is not armed; armed timers: {armed}")
        del self.env.timers[name]
        self.process.on_timer(name)

    def pass_time(self, duration: Nanos) -> None:
        """Let time pass; timers that become due go off in order."""
        end = self.env.now + duration
        while due := min(((at, name) for name, at in self.env.timers.items() if at <= end), default=None):
            self.env.now = max(self.env.now, due[0])
            self.fire(due[1])
        self.env.now = end

    def take_sent(self) -> list[tuple[NodeId, Message]]:
        """The messages sent since the last call, each with its destination."""
        sent, self.env.sent = self.env.sent, []
        return sent

    def take_delivered(self) -> list[Delivery]:
        """The deliveries made since the last call."""
        delivered, self.env.delivered = self.env.delivered, []
        return delivered

    def waits(self) -> list[tuple[str, str, Nanos]]:
        """What the process says it waits for: subject, blocker, since when."""
        return [(wait.subject, wait.blocker, wait.since) for wait in self.process.explain().waits]
