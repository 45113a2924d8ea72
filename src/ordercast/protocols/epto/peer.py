"""A peer of EpTO: broadcasts, relays, orders and delivers (Algorithms 1 and 2).

A peer that knows of no event has nothing to do in its rounds, so it sleeps through them; the draws of a
round depend on its number alone, so nothing else changes.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial

import msgspec

from ordercast.components.sampling import MESSAGES as SAMPLING_MESSAGES
from ordercast.components.sampling import Sampler
from ordercast.core import (
    Delivered,
    Env,
    Explanation,
    GroupId,
    Groups,
    LocalError,
    Member,
    Message,
    Nanos,
    NodeId,
    OutOfOrder,
    Receiver,
    RemoteError,
    Stack,
    Stamp,
    Wait,
    format_ns,
)
from ordercast.protocols.epto.clocks import StampClock
from ordercast.protocols.epto.dissemination import NextBall
from ordercast.protocols.epto.explain import explain_waits
from ordercast.protocols.epto.memory import Memory
from ordercast.protocols.epto.messages import Ball, Event, Hello, Key, LogicalTime
from ordercast.protocols.epto.newcomer import ASK, ASKING, READY, Newcomer
from ordercast.protocols.epto.ordering import START, Ordering
from ordercast.protocols.epto.rounds import Rounds, RoundsApart, RoundsTogether
from ordercast.protocols.epto.stability import Stability
from ordercast.protocols.epto.subscriptions import GROUPS, Subscriptions

_PLACE = "place"


@dataclass(frozen=True, slots=True)
class Setting:
    """The settings of a peer."""

    fanout: int
    ttl: int
    round_ns: Nanos
    jitter_ns: Nanos
    window: int
    events: int
    peers: int
    """Peers are nodes 0 to this."""
    groups: Mapping[GroupId, tuple[NodeId, ...]]
    asks_time: bool
    """Whether it must learn the time before it broadcasts, as with logical clocks."""
    tags: bool
    memory: int
    durable: bool
    ball_bytes: int = 0
    """If the known events have more bytes than this, a peer takes hardly any new ones; 0: no limit."""
    together: bool = False
    """Whether rounds are at the multiples of their length, and not at random times."""


class Peer(Stack, Member, Receiver):
    """One process of EpTO. One that is in no group relays like all others, and delivers nothing."""

    def __init__(
        self,
        env: Env,
        setting: Setting,
        clock: StampClock,
        make_sampler: Callable[[Env], Sampler],
        stability: Stability,
        seed: int,
        resize: Callable[[int], tuple[Setting, Stability]] | None = None,
    ) -> None:
        """`resize` gives the settings for another number of peers; without it they stay as they are."""
        super().__init__(env)
        self._set = setting
        self._resize = resize
        self._clock = clock
        self._sampler = self.embed("sampling", make_sampler, SAMPLING_MESSAGES)
        self._stability = stability
        self._seed = seed
        mine = (group for group, members in setting.groups.items() if env.me in members)
        self._mine = Subscriptions(env, mine, setting.peers, durable=setting.durable)
        self._next = NextBall()
        self._order = Ordering(setting.ttl)
        self._memory = Memory(setting.memory, START)
        self._rounds = self._rounds_from(0)
        self._armed = False
        self._number = 0
        self._began: Nanos = 0
        self._stamped = -1
        self._under_way: set[Key] = set()
        self._newcomer = Newcomer(
            env,
            self._sampler,
            min(setting.fanout, setting.peers - 1),
            setting.ttl,
            setting.round_ns,
            asks_time=setting.asks_time,
        )
        self._late = 0
        self._unbelieved = 0
        self._refused = 0
        self._doubted_at: Nanos = -1
        """The round that was so late that the time was asked for."""
        self._standstills = 0
        self._stood_ns: Nanos = 0
        """How long it stood still, all times together."""
        self._fresh_bytes = 0
        """Bytes of own events that were not relayed yet."""
        self._behind = False
        """Whether it waits for the time from which on it delivers."""

    def on_start(self, saved: Mapping[str, bytes]) -> None:
        """Begin with the first round, where an earlier life stopped if its place was kept."""
        self._number = self._began = self.env.now
        self._rounds = self._rounds_from(self.env.now)
        if _PLACE in saved:
            last = msgspec.msgpack.decode(saved[_PLACE], type=Key)
            self._order = Ordering(self._set.ttl, last)
            self._memory = Memory(self._set.memory, last)
            self._clock.hear(last[0])
        if GROUPS in saved:
            self._mine.restore(saved[GROUPS])
        self._behind = self.env.forgot and _PLACE not in saved
        super().on_start(saved)
        self._newcomer.ask()
        self._catch_up()

    def _catch_up(self) -> None:
        """Join the groups that wait for the time, as soon as it is known. Leave out what was sent before this
        life: an earlier life, which is forgotten, may have delivered it."""
        if self._newcomer.state is ASKING:
            return
        if self._behind:
            last = (self._clock.read(self.env.now), self._set.peers, 0)
            self._order = Ordering(self._set.ttl, last)
            self._memory = Memory(self._set.memory, last)
            self._behind = False
            self._mine.join_again(last)
        self._mine.join_wanted(self._order.last, self._clock.read(self.env.now))

    # Groups

    @property
    def joined(self) -> Collection[GroupId]:
        """The groups whose events it delivers."""
        return self._mine.groups

    def join(self, group: GroupId) -> None:
        """Deliver the events of a group, from the place on that the peer has reached."""
        self._mine.want(group)
        self._catch_up()

    def leave(self, group: GroupId) -> None:
        """Deliver no more events of a group; the peer relays them as before."""
        self._mine.leave(group, self._order.last)

    def on_nodes(self, roles: Mapping[NodeId, str]) -> None:
        """Peers have come or gone: know them, and spread events as widely as so many peers need.

        Ids of removed peers still count, so balls and lives of events never become fewer or shorter.
        """
        super().on_nodes(roles)
        peers = max(self._set.peers, 1 + max(roles))
        if peers > self._set.peers and self._resize is not None:
            self._set, self._stability = self._resize(peers)
            self._order.resize(self._set.ttl)
            self._newcomer.resize(min(self._set.fanout, peers - 1), self._set.ttl)

    def _rounds_from(self, now: Nanos) -> Rounds:
        kind = RoundsTogether if self._set.together else RoundsApart
        return kind(self._seed, self._set.round_ns, self._set.jitter_ns, now)

    # Broadcasting

    def submit(self, groups: Groups, payload: bytes) -> bool:
        """Broadcast (lines 6 to 10); not while too much is under way, or the time is not known yet."""
        unknown = [group for group in groups if group not in self._set.groups]
        if unknown or not groups:
            raise LocalError(
                f"cannot send to groups {groups}: "
                + (f"there is no group {unknown[0]}" if unknown else "none is named")
            )
        if self._armed:
            self._doubt_if_late()
        if not self._newcomer.ready() or not self._has_room(len(payload)):
            return False
        self._number += 1
        floor = max(self._stamped, self._order.last[0])
        self._stamped = self._clock.stamp(self.env.now, floor)
        event = Event(self._stamped, self.env.me, self._number, groups, payload)
        self._under_way.add(event.key)
        self._next.put(event.key, event, 0)
        self._next.fresh += 1
        self._fresh_bytes += len(payload)
        self._wake()
        return True

    def _has_room(self, size: int) -> bool:
        """Whether another event may go. All peers relay all events, so what is under way anywhere counts."""
        if len(self._under_way) >= self._set.window:
            return False
        known = self._order.payload_bytes + self._fresh_bytes + size
        return not self._set.ball_bytes or not self._under_way or known <= self._set.ball_bytes

    # Hearing

    def on_own_message(self, source: NodeId, message: Message) -> None:
        """Take a ball (lines 11 to 19), or tell the time."""
        if isinstance(message, Ball):
            self._take(source, message)
        elif isinstance(message, Hello):
            self.env.send(source, LogicalTime(self._clock.read(self.env.now)))
        elif isinstance(message, LogicalTime):
            self._learn(source, message.clock)

    def _learn(self, source: NodeId, clock: int) -> None:
        """Take the time from a peer; a newcomer has to believe it, unless it is absurd."""
        if self._clock.is_absurd(clock, self.env.now):
            raise RemoteError(f"node {source} tells the time {clock}, which cannot be")
        if not self._newcomer.new and not self._clock.believes(clock, self.env.now):
            self._unbelieved += 1
            return
        self._clock.hear(clock)
        self._newcomer.answer(source)
        self._catch_up()

    def _take(self, source: NodeId, ball: Ball) -> None:
        if len(ball.ttls) != len(ball.events):
            raise RemoteError(
                f"a ball from node {source} has {len(ball.events)} events but {len(ball.ttls)} ages"
            )
        ttl_max, now, clock = self._set.ttl, self.env.now, self._clock
        heard, order = self._next, self._order
        peers, groups = self._set.peers, self._set.groups
        for event in ball.events:
            if (
                event.source >= peers
                or not event.groups
                or any(group not in groups for group in event.groups)
            ):
                raise RemoteError(
                    f"a ball from node {source} has an event of node {event.source} without a group"
                )
        latest = max((event.ts for event in ball.events), default=0)
        if clock.is_absurd(latest, now):
            raise RemoteError(f"a ball from node {source} has an event of time {latest}, which cannot be")
        room = self._set.events - len(order)
        for event, ttl in zip(ball.events, ball.ttls, strict=True):
            ts = event.ts
            if not clock.believes(ts, now):
                self._unbelieved += 1
                continue
            if ttl < ttl_max:
                key = (ts, event.source, event.number)
                known = key in heard or key in order
                if known or heard.fresh < room:
                    heard.put(key, event, ttl)
                    heard.fresh += not known
                else:
                    self._refused += 1
            clock.hear(ts)
        self._newcomer.hear()
        if heard:
            self._wake()

    # Rounds

    def on_own_timer(self, name: str) -> None:
        """A round, or time to ask again."""
        if name == "round":
            self._armed = False
            self._run_round()
        elif name == ASK:
            self._newcomer.ask()
            self._catch_up()

    def _run_round(self) -> None:
        """Relay, order, deliver (lines 20 to 28)."""
        self._note_standstill()
        self._rounds.run(self.env.now)
        heard, self._next = self._next, NextBall()
        heard.age()
        if heard:
            peers = self._sampler.sample(self._rounds.number, self._set.fanout)
            for ball in heard.balls():
                self.env.multicast(peers, ball)
        self._order_events(heard)
        self._fresh_bytes = 0
        if self._next or self._order:
            self._arm()

    def _note_standstill(self) -> None:
        """Notice that this round comes later than an event lives. What was broadcast meanwhile may have come
        and gone, and nobody relays it any more."""
        late = self._doubt_if_late()
        if late > self._set.ttl * self._set.round_ns:
            self._standstills += 1
            self._stood_ns += late

    def _doubt_if_late(self) -> Nanos:
        """By how much the next round is late. If it should have been over, the logical time has gone on."""
        due = self._rounds.due
        late = self.env.now - due
        if late > self._set.round_ns and self._doubted_at != due:
            self._doubted_at = due  # once for each round, so that a peer that is always late goes on
            self._newcomer.doubt()
        return late

    def _order_events(self, heard: NextBall) -> None:
        if self._behind:
            return
        order, round_number = self._order, self._rounds.number
        for key, ttl in heard.ttls.items():
            if not order.admit(key, heard.events[key], ttl, round_number):
                self._pass(key, heard.events[key])
        before = order.last
        stable = list(order.stable(round_number))
        if self._set.durable and order.last != before:
            self.env.save(_PLACE, msgspec.msgpack.encode(order.last))
        for key, event in stable:
            self._under_way.discard(key)
            if self._set.tags:
                self._memory.add(key)
            if self._mine.receives(key, event.groups):
                stamp = Stamp(event.ts, event.source)
                self.env.deliver(Delivered(event.payload, event.groups, event.source, stamp))

    def _pass(self, key: Key, event: Event) -> None:
        """Take an event whose place has passed; if it was not delivered, it came too late."""
        if not self._set.tags or key in self._memory:
            return
        self._late += 1
        self._memory.add_late(key)
        if self._mine.receives(key, event.groups):
            stamp = Stamp(event.ts, event.source)
            self.env.deliver(OutOfOrder(event.payload, event.groups, event.source, stamp))

    def _wake(self) -> None:
        """Go on with rounds, at the time of the next one, if this peer slept."""
        if self._armed:
            return
        self._rounds.sleep(self.env.now)
        self._arm()

    def _arm(self) -> None:
        self._armed = True
        self.env.set_timer("round", max(0, self._rounds.due - self.env.now))

    def explain_own(self) -> Explanation:
        """The events that wait, and what they wait for."""
        state: dict[str, str | int] = {
            "role": "peer" if self._mine.groups else "publisher",
            "round": self._rounds.number,
            "clock": self._clock.read(self.env.now),
            "events to relay": len(self._next),
            "events known": len(self._order),
            "own events under way": len(self._under_way),
            "not believed": self._unbelieved,
            "refused for want of room": self._refused,
        }
        if self._standstills:
            state["standstills"] = self._standstills
            state["stood still"] = f"{format_ns(self._stood_ns)}; events of that time may be missing here"
        if self._set.tags:  # who drops late events does not remember which ones were delivered
            state["came too late"] = self._late
        setting, rounds_here = self._set, partial(self._order.rounds_here, round_number=self._rounds.number)
        waits = [
            *explain_waits(
                self._waiting(), setting.ttl, setting.round_ns, self._stability, self.env.now, rounds_here
            )
        ]
        lacks = ""
        if self._newcomer.state is not READY:
            lacks = "more peers; too few are known, or have told their logical time"
            state["waits"] = lacks
            waits.insert(0, Wait("all messages", lacks, self._began))
        return Explanation(state, tuple(waits), lacks)

    def _waiting(self) -> list[tuple[Key, Event, int]]:
        """Every known event that may still be delivered in its place, with its age, in order."""
        order, heard = self._order, self._next
        fresh = [key for key in heard.ttls if key > order.last and key not in order]
        new = [(key, heard.events[key], heard.ttls[key]) for key in fresh]
        return sorted([*order.waiting(self._rounds.number), *new], key=lambda known: known[0])
