"""One fixed sequencer, in two flavours.

`lossy`: the multi-sequenced groupcast of Hydra section 4.2. The sequencer numbers messages for each group;
a receiver that misses a number waits a little and then delivers a drop notification for it. The sequencer
repeats its last numbers, so that the loss of the last message shows too.

`views`: on a network that loses nothing, the same numbers carry views as well: after every seventh message
of a group all of its receivers install its next view.
"""

from collections.abc import Callable
from functools import partial

from ordercast.core import (
    MILLISECOND,
    Agreement,
    Codec,
    Crashes,
    Delivered,
    Deployment,
    Dropped,
    Env,
    Explanation,
    Fault,
    Gaps,
    GroupId,
    Groups,
    Guarantees,
    LocalError,
    Member,
    Message,
    Node,
    NodeId,
    Order,
    Payload,
    Plan,
    Process,
    Stamp,
    View,
    Wait,
)
from ordercast.core import Numbered as Carried

LOSSY = Guarantees(
    order=Order.ACROSS,
    agreement=Agreement.NOTIFIED,
    gaps=Gaps.NOTIFIED,
    crashes=Crashes.NONE,
    tolerates=(Fault.LOSS, Fault.DUPLICATION, Fault.REORDERING, Fault.PARTITION, Fault.PAUSE, Fault.CLOCK),
)
VIEWS = Guarantees(
    order=Order.ACROSS,
    agreement=Agreement.ALL,
    validity=True,
    gaps=Gaps.NEVER,
    views=True,
    crashes=Crashes.NONE,
    tolerates=(Fault.DUPLICATION, Fault.REORDERING, Fault.PAUSE, Fault.CLOCK),
)
VIEW_EVERY = 7
PATIENCE = 5 * MILLISECOND
FLUSH = 20 * MILLISECOND


class Request(Message, frozen=True, tag=1):
    """From a sender to the sequencer."""

    number: int
    groups: Groups
    payload: Payload


class Numbered(Message, frozen=True, tag=2):
    """From the sequencer to the receivers."""

    clock: int
    numbers: tuple[int, ...]
    groups: Groups
    sender: NodeId
    payload: Payload
    sequencer: NodeId

    def numbered(self) -> Carried:
        """Its stamp."""
        return self.sequencer, self.clock, self.groups, self.numbers


class Flush(Message, frozen=True, tag=3):
    """The last number of a group."""

    number: int


class Sender(Member):
    """Sends to the sequencer."""

    def __init__(self, env: Env, sequencer: NodeId, groups: tuple[GroupId, ...]) -> None:
        super().__init__(env)
        self._sequencer = sequencer
        self._groups = groups
        self._number = 0

    def submit(self, groups: Groups, payload: bytes) -> bool:
        """Pass it on."""
        if not groups or any(group not in self._groups for group in groups):
            raise LocalError(f"no groups {groups}")
        self._number += 1
        self.env.send(self._sequencer, Request(self._number, groups, payload))
        return True

    def on_message(self, source: NodeId, message: Message) -> None:
        """Nothing comes."""

    def explain(self) -> Explanation:
        """Nothing waits."""
        return Explanation({"role": "sender"})


class Sequencer(Process):
    """Numbers messages."""

    def __init__(self, env: Env, members: dict[GroupId, tuple[NodeId, ...]]) -> None:
        super().__init__(env)
        self._members = members
        self._numbers = dict.fromkeys(members, 0)
        self._seen: dict[NodeId, set[int]] = {}
        self._clock = 0

    def on_start(self, saved: object) -> None:
        """Begin to flush."""
        self.env.set_timer("flush", FLUSH)

    def on_message(self, source: NodeId, message: Message) -> None:
        """Number a message and pass it on, once."""
        if not isinstance(message, Request) or message.number in self._seen.setdefault(source, set()):
            return
        self._seen[source].add(message.number)
        self._clock += 1
        for group in message.groups:
            self._numbers[group] += 1
        numbers = tuple(self._numbers[group] for group in message.groups)
        stamped = Numbered(self._clock, numbers, message.groups, source, message.payload, self.env.me)
        for group in message.groups:
            self.env.multicast(self._members[group], stamped)

    def on_timer(self, name: str) -> None:
        """Tell every group its last number."""
        for group, members in self._members.items():
            self.env.multicast(members, Flush(self._numbers[group]))
        self.env.set_timer("flush", FLUSH)

    def explain(self) -> Explanation:
        """Nothing waits."""
        return Explanation({"role": "sequencer", "clock": self._clock})


class Receiver(Process):
    """Delivers in order of the numbers of its group."""

    def __init__(self, env: Env, group: GroupId, members: tuple[NodeId, ...], sequencer: NodeId) -> None:
        super().__init__(env)
        self.group = group
        self.members = members
        self.sequencer = sequencer
        self.next = 1
        self.last = 0
        self.buffer: dict[int, Numbered] = {}
        self.lossy = True

    def on_message(self, source: NodeId, message: Message) -> None:
        """Keep what is new, and deliver what is due."""
        if isinstance(message, Flush):
            self.last = max(self.last, message.number)
        elif isinstance(message, Numbered):
            number = self.number(message)
            self.last = max(self.last, number)
            if number >= self.next:
                self.buffer.setdefault(number, message)
        self.deliver_due()
        if self.lossy and self.next <= self.last:
            self.env.set_timer("patience", PATIENCE)

    def number(self, message: Numbered) -> int:
        """The number of a message in this receiver's group."""
        return message.numbers[message.groups.index(self.group)]

    def deliver_due(self) -> None:
        """Deliver up to the first gap."""
        while self.next in self.buffer:
            self.deliver(self.buffer.pop(self.next))
            self.next += 1

    def deliver(self, message: Numbered) -> None:
        """Hand over one message."""
        stamp = Stamp(message.clock, self.sequencer, message.numbers)
        self.env.deliver(Delivered(message.payload, message.groups, message.sender, stamp))

    def on_timer(self, name: str) -> None:
        """Patience is over: what is missing below something known is lost."""
        while self.next <= self.last:
            if self.next not in self.buffer:
                self.notify(self.next)
                self.next += 1
            self.deliver_due()

    def notify(self, number: int) -> None:
        """Hand over one drop notification."""
        self.env.deliver(Dropped(self.group, self.sequencer, number))

    def explain(self) -> Explanation:
        """What waits for the next number."""
        waits = tuple(Wait(f"number {n}", f"number {self.next}", 0) for n in sorted(self.buffer))
        return Explanation({"role": "receiver", "next": self.next}, waits)


class ViewReceiver(Receiver):
    """Installs a view after every seventh message of its group."""

    def __init__(self, env: Env, group: GroupId, members: tuple[NodeId, ...], sequencer: NodeId) -> None:
        super().__init__(env, group, members, sequencer)
        self.lossy = False

    def on_start(self, saved: object) -> None:
        """Install the first view."""
        self.install(1)

    def install(self, config: int) -> None:
        """Install a view."""
        self.env.deliver(View(self.group, config, self.members))

    def deliver(self, message: Numbered) -> None:
        """A message, and a view behind every seventh."""
        super().deliver(message)
        number = self.number(message)
        if number % VIEW_EVERY == 0:
            self.install(1 + number // VIEW_EVERY)


MakeReceiver = Callable[[Env, GroupId, tuple[NodeId, ...], NodeId], Receiver]


def plan(
    deployment: Deployment,
    guarantees: Guarantees = LOSSY,
    make: MakeReceiver = Receiver,
    broken: MakeReceiver | None = None,
) -> Plan:
    """Receivers, senders and the sequencer; the first receiver may be of a broken make."""
    groups = dict(enumerate(deployment.groups))
    if sum(map(len, deployment.groups)) > deployment.receivers:
        raise LocalError("the groups of the sequencer model do not overlap")
    senders = deployment.sender_ids()
    sequencer = deployment.receivers + deployment.senders
    nodes = []
    for node in range(deployment.receivers):
        group = next(group for group, members in groups.items() if node in members)
        chosen = broken if broken and node == 0 else make

        def factory(env: Env, group: GroupId = group, chosen: MakeReceiver = chosen) -> Receiver:
            return chosen(env, group, groups[group], sequencer)

        nodes.append(Node(node, "receiver", node, factory))
    for node in senders:
        make_sender = partial(Sender, sequencer=sequencer, groups=tuple(groups))
        nodes.append(Node(node, "sender", deployment.sender_host(node), make_sender))
    nodes.append(Node(sequencer, "sequencer", sequencer, partial(Sequencer, members=groups)))
    codec = Codec([Request, Numbered, Flush])
    return Plan("sequencer-model", guarantees, tuple(nodes), groups, senders, codec)
