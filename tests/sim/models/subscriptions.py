"""One sequencer and its subscribers: receivers join and leave at a number, and nobody has a list of them.

The sequencer numbers the messages of all groups in one order, and keeps them. Receivers fetch what is next,
and deliver what is for their groups. To join or to leave a group, a receiver asks the sequencer for the last
number: it delivers the messages of the group after that number, or up to it. All requests are repeated until
they are answered, so nothing but the loss of packets is tolerated.
"""

from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial

import msgspec

from ordercast.core import (
    MILLISECOND,
    Agreement,
    Codec,
    Crashes,
    Delivered,
    Deployment,
    Env,
    Explanation,
    Fault,
    Gaps,
    GroupId,
    Groups,
    Guarantees,
    Joined,
    Left,
    LocalError,
    Member,
    Membership,
    Message,
    Node,
    NodeId,
    Order,
    Partition,
    Payload,
    Plan,
    Process,
    Receiver,
    Stamp,
)

PROMISED = Guarantees(
    order=Order.ACROSS,
    agreement=Agreement.ALL,
    uniform=True,
    validity=True,
    gaps=Gaps.NEVER,
    partition=Partition.BLOCKS,
    crashes=Crashes.NONE,
    tolerates=(Fault.LOSS, Fault.DUPLICATION, Fault.REORDERING, Fault.PARTITION, Fault.PAUSE, Fault.CLOCK),
    membership=Membership.SUBSCRIPTIONS,
)
EVERY = 5 * MILLISECOND
AT_ONCE = 20
"""How many messages a receiver fetches at once."""


class Request(Message, frozen=True, tag=1):
    """A message for the order."""

    number: int
    groups: Groups
    payload: Payload


class Taken(Message, frozen=True, tag=2):
    """It has a place."""

    number: int


class Fetch(Message, frozen=True, tag=3):
    """What comes from this place on?"""

    place: int


class Ordered(Message, frozen=True, tag=4):
    """A message at its place."""

    place: int
    groups: Groups
    sender: NodeId
    payload: Payload


class Ask(Message, frozen=True, tag=5):
    """What is the last place?"""

    number: int


class Told(Message, frozen=True, tag=6):
    """The last place."""

    number: int
    place: int


class Sender(Member):
    """Sends to the sequencer, again and again."""

    def __init__(self, env: Env, sequencer: NodeId, groups: tuple[GroupId, ...]) -> None:
        super().__init__(env)
        self._sequencer = sequencer
        self._groups = groups
        self._number = 0
        self._waiting: dict[int, Request] = {}

    def submit(self, groups: Groups, payload: bytes) -> bool:
        """Pass it on."""
        if not groups or any(group not in self._groups for group in groups):
            raise LocalError(f"no groups {groups}")
        self._number += 1
        self._waiting[self._number] = Request(self._number, groups, payload)
        self.on_timer("")
        return True

    def on_message(self, source: NodeId, message: Message) -> None:
        """The sequencer has it."""
        if isinstance(message, Taken):
            self._waiting.pop(message.number, None)

    def on_timer(self, name: str) -> None:
        """Send what was not taken yet."""
        for request in self._waiting.values():
            self.env.send(self._sequencer, request)
        if self._waiting:
            self.env.set_timer("again", EVERY)

    def explain(self) -> Explanation:
        """What was not taken yet."""
        return Explanation({"role": "sender", "waiting": len(self._waiting)})


class Sequencer(Process):
    """Has the order, and knows no receiver."""

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self._log: list[Ordered] = []
        self._seen: set[tuple[NodeId, int]] = set()

    def on_message(self, source: NodeId, message: Message) -> None:
        """Append, or answer."""
        if isinstance(message, Request):
            if (source, message.number) not in self._seen:
                self._seen.add((source, message.number))
                self._log.append(Ordered(len(self._log), message.groups, source, message.payload))
            self.env.send(source, Taken(message.number))
        elif isinstance(message, Fetch):
            for ordered in self._log[message.place : message.place + AT_ONCE]:
                self.env.send(source, ordered)
        elif isinstance(message, Ask):
            self.env.send(source, Told(message.number, len(self._log) - 1))

    def explain(self) -> Explanation:
        """Nothing waits."""
        return Explanation({"role": "sequencer", "places": len(self._log)})


class Subscriber(Receiver):
    """Delivers what is for its groups."""

    def __init__(self, env: Env, sequencer: NodeId, groups: Collection[GroupId]) -> None:
        super().__init__(env)
        self.sequencer = sequencer
        self.next = 0
        self.came: dict[int, Ordered] = {}
        self.after: dict[GroupId, int] = dict.fromkeys(groups, -1)
        """For each of its groups, the place after which it delivers."""
        self.until: dict[GroupId, int] = {}
        """For each group that it leaves, the last place."""
        self.asked: dict[int, tuple[str, GroupId]] = {}
        self.requests = 0

    @property
    def joined(self) -> Collection[GroupId]:
        """The groups that it is in now."""
        return self.after.keys()

    def on_start(self, saved: object) -> None:
        """Begin to fetch."""
        self.on_timer("")

    def join(self, group: GroupId) -> None:
        """Ask for the last place."""
        self._ask("join", group)

    def leave(self, group: GroupId) -> None:
        """Ask for the last place."""
        self._ask("leave", group)

    def _ask(self, what: str, group: GroupId) -> None:
        self.requests += 1
        self.asked[self.requests] = (what, group)
        self.env.send(self.sequencer, Ask(self.requests))

    def on_timer(self, name: str) -> None:
        """Fetch, and ask again."""
        self.env.send(self.sequencer, Fetch(self.next))
        for number in self.asked:
            self.env.send(self.sequencer, Ask(number))
        self.env.set_timer("again", EVERY)

    def on_message(self, source: NodeId, message: Message) -> None:
        """Deliver what is next, or begin or end at a place."""
        if isinstance(message, Ordered) and message.place >= self.next:
            self.came[message.place] = message
            while self.next in self.came:
                self.next += 1
                self.take(self.came.pop(self.next - 1))
        elif isinstance(message, Told) and message.number in self.asked:
            what, group = self.asked.pop(message.number)
            place = max(message.place, self.next - 1)  # it may have got further meanwhile
            if what == "join":
                self.enter(group, place)
            else:
                self.until[group] = place
        for group in [group for group, last in self.until.items() if self.next > last]:
            self.end(group, self.until.pop(group))

    def take(self, message: Ordered) -> None:
        """Deliver a message, if it is for a group of this receiver."""
        if any(self.wants(group, message.place) for group in message.groups):
            self.deliver(message)

    def wants(self, group: GroupId, place: int) -> bool:
        """Whether a place in a group is within this receiver's time."""
        return group in self.after and self.after[group] < place <= self.until.get(group, place)

    def deliver(self, message: Ordered) -> None:
        """Hand over a message."""
        stamp = Stamp(message.place, self.sequencer)
        self.env.deliver(Delivered(message.payload, message.groups, message.sender, stamp))

    def enter(self, group: GroupId, place: int) -> None:
        """Deliver the messages of a group after a place."""
        self.after[group] = place
        self.env.deliver(Joined(group, stamp=Stamp(place, self.sequencer)))

    def end(self, group: GroupId, place: int) -> None:
        """Deliver no more of a group: all up to a place came."""
        del self.after[group]
        self.env.deliver(Left(group, stamp=Stamp(place, self.sequencer)))

    def explain(self) -> Explanation:
        """Nothing is held."""
        return Explanation({"role": "subscriber", "next": self.next})


class Forgetful(Subscriber):
    """Broken: misses the first message after the place where it joined."""

    def wants(self, group: GroupId, place: int) -> bool:
        """Not the first."""
        return super().wants(group, place) and not 0 <= self.after[group] == place - 1


class Hasty(Subscriber):
    """Broken: tells that it joined later than it did, and delivers what comes before that place."""

    def enter(self, group: GroupId, place: int) -> None:
        """Tell a later place."""
        self.after[group] = place
        self.env.deliver(Joined(group, stamp=Stamp(place + 1, self.sequencer)))


class Unasked(Subscriber):
    """Broken: delivers before it tells that it has joined."""

    def enter(self, group: GroupId, place: int) -> None:
        """Tell nothing yet."""
        self.after[group] = place

    def deliver(self, message: Ordered) -> None:
        """Tell it too late."""
        super().deliver(message)
        for group in message.groups:
            if self.after.get(group, -1) >= 0:
                self.env.deliver(Joined(group, stamp=Stamp(self.after[group], self.sequencer)))
                self.after[group] = -1


class Lingering(Subscriber):
    """Broken: goes on after it has left."""

    def end(self, group: GroupId, place: int) -> None:
        """Tell it, and stay."""
        self.env.deliver(Left(group, stamp=Stamp(place, self.sequencer)))


class Early(Subscriber):
    """Broken: tells a place before that where it really left."""

    def end(self, group: GroupId, place: int) -> None:
        """Tell an earlier place."""
        super().end(group, 0)


class Impatient(Subscriber):
    """Broken: leaves at once, and names a place whose messages it has not delivered."""

    def leave(self, group: GroupId) -> None:
        """Leave without asking."""
        self.end(group, self.next + 5)


class Deaf(Subscriber):
    """Broken: never joins."""

    def enter(self, group: GroupId, place: int) -> None:
        """Do nothing."""


class Captive(Subscriber):
    """Broken: never leaves."""

    def leave(self, group: GroupId) -> None:
        """Do nothing."""


class Swapping(Subscriber):
    """Broken: delivers a message after the next one, if that goes to another group."""

    held: Ordered | None = None

    def take(self, message: Ordered) -> None:
        """Hold it, or deliver it before the one that is held."""
        if not any(self.wants(group, message.place) for group in message.groups):
            return
        held, self.held = self.held, None
        if held is None:
            self.held = message
        elif held.groups != message.groups:
            self.deliver(message)
            self.deliver(held)
        else:
            self.deliver(held)
            self.deliver(message)


MakeSubscriber = Callable[[Env, NodeId, Collection[GroupId]], Subscriber]


def plan(deployment: Deployment, broken: MakeSubscriber | None = None) -> Plan:
    """Receivers, senders and the sequencer; the last receiver may be of a broken make."""
    groups = dict(enumerate(deployment.groups))
    sequencer = deployment.receivers + deployment.senders
    nodes = []
    for node in range(deployment.receivers):
        own = tuple(group for group, members in groups.items() if node in members)
        make = broken if broken and node == deployment.receivers - 1 else Subscriber
        nodes.append(Node(node, "subscriber", node, partial(_make, make, sequencer, own)))
    for node in deployment.sender_ids():
        make_sender = partial(Sender, sequencer=sequencer, groups=tuple(groups))
        nodes.append(Node(node, "sender", deployment.sender_host(node), make_sender))
    nodes.append(Node(sequencer, "sequencer", sequencer, Sequencer))
    codec = Codec([Request, Taken, Fetch, Ordered, Ask, Told])
    senders, joiners = deployment.sender_ids(), deployment.joiner_ids()
    return Plan("subscriptions", PROMISED, tuple(nodes), groups, senders, codec, joiners=joiners)


def overlapping(deployment: Deployment, broken: MakeSubscriber | None = None) -> Plan:
    """The same with a weaker promise: one order where groups overlap, of messages to one group each."""
    full = plan(deployment, broken)
    promised = msgspec.structs.replace(full.guarantees, order=Order.OVERLAPS, groups_max=1)
    return replace(full, guarantees=promised)


def _make(make: MakeSubscriber, sequencer: NodeId, groups: Collection[GroupId], env: Env) -> Subscriber:
    return make(env, sequencer, groups)
