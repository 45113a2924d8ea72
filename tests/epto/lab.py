"""Single peers of EpTO, driven by hand: what they do is recorded, and a round is when a test says so."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from ordercast.components.sampling import Uniform
from ordercast.core import Delivered, Delivery, GroupId, Message, NodeId, OutOfOrder
from ordercast.protocols.epto.clocks import GlobalClock, LogicalClock, StampClock
from ordercast.protocols.epto.messages import Ball, Event, Key
from ordercast.protocols.epto.ordering import Ordering
from ordercast.protocols.epto.peer import Peer, Setting
from ordercast.protocols.epto.stability import Stability
from ordercast.testing import RecordingEnv

ROUND = 1_000_000
SECOND = 1_000_000_000
SETTING = Setting(
    fanout=2,
    ttl=3,
    round_ns=ROUND,
    jitter_ns=0,
    window=100,
    events=1000,
    peers=3,
    groups={0: (0, 1, 2)},
    asks_time=False,
    tags=False,
    memory=64,
    durable=False,
)
"""Three peers, each of which throws at both others."""


class Bench:
    """A peer and its recording environment. Payloads are words."""

    def __init__(
        self,
        me: NodeId = 0,
        clock: StampClock | None = None,
        saved: Mapping[str, bytes] | None = None,
        now: int = 0,
        order: Ordering | None = None,
        seed: int = 7,
        **changes: object,
    ) -> None:
        """Changes are those of the setting; another ordering component may take the place of the peer's."""
        self.setting = replace(SETTING, **changes)  # type: ignore[arg-type]
        self.env = RecordingEnv(me, now)
        sampler = partial(Uniform, seed=seed, peers=range(self.setting.peers))
        stability = Stability(self.setting.peers, max(1, self.setting.fanout), self.setting.ttl)
        self.peer = Peer(self.env, self.setting, clock or LogicalClock(), sampler, stability, seed)
        self.peer.on_start(saved or {})
        if order is not None:
            self.peer._order = order

    def submit(self, word: str, *groups: GroupId) -> bool:
        """Broadcast."""
        return self.peer.submit(groups or (0,), word.encode())

    def hear(self, *heard: tuple[Event, int], source: NodeId = 1) -> None:
        """A ball of events and ages arrives."""
        events, ttls = tuple(event for event, _ in heard), tuple(ttl for _, ttl in heard)
        self.peer.on_message(source, Ball(ttls, events))

    def round(self, times: int = 1) -> list[tuple[NodeId, Message]]:
        """Time goes on to the next round, if the peer has one to do; what it sends."""
        self.env.sent.clear()
        for _ in range(times):
            due = self.env.timers.pop("round", None)
            if due is not None:
                self.env.now = max(self.env.now, due)
                self.peer.on_timer("round")
        return list(self.env.sent)

    def balls(self) -> dict[str, int]:
        """The next round: the words in its balls, with their ages."""
        sent = [message for _, message in self.round() if isinstance(message, Ball)]
        return {
            event.payload.decode(): ttl
            for ball in sent
            for event, ttl in zip(ball.events, ball.ttls, strict=True)
        }

    def words(self) -> list[str]:
        """What was delivered so far; late ones in brackets."""
        return [word_of(delivery) for delivery in self.env.delivered]

    def rounds_until(self, word: str, limit: int = 100) -> int:
        """After how many rounds a word is delivered."""
        for number in range(1, limit):
            self.round()
            if word in self.words():
                return number
        raise AssertionError(f"{word} is not delivered in {limit} rounds: {self.words()}")


def word_of(delivery: Delivery) -> str:
    """A delivery, as a word."""
    assert isinstance(delivery, Delivered | OutOfOrder)
    word = delivery.payload.decode()
    return f"({word})" if isinstance(delivery, OutOfOrder) else word


def event(
    word: str, ts: int, source: NodeId = 1, number: int = 1, groups: tuple[GroupId, ...] = (0,)
) -> Event:
    """An event of another peer."""
    return Event(ts, source, number, groups, word.encode())


def key(ts: int, source: NodeId = 1, number: int = 1) -> Key:
    """Its place."""
    return (ts, source, number)


def global_clock(ahead_ns: int = 10 * SECOND) -> GlobalClock:
    """A clock taken for that of all."""
    return GlobalClock(ahead_ns)
