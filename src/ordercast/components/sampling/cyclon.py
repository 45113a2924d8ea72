"""Cyclon: a small view of the system at each node, shuffled all the time (Voulgaris, Gavidia and van Steen,
2005). EpTO's evaluation draws its targets from it (section 6, Figure 9).

A node's view is a list of neighbours with ages. Every period a node, the asker:

1. makes all its neighbours one older, takes the oldest one out of the view, and sends it up to `length` - 1
   others, drawn at random. The asker itself comes with them as an entry of age 0.
2. The receiver draws up to `length` of its own neighbours, never the asker, and sends them back.
3. Both take in what they got: an entry that they have keeps the lower age; others go to free places first,
   and then to the places of the entries that were sent, in the order in which they were. An entry that was
   sent and came in too stays. What then finds no place is dropped: a view never outgrows its size.

With `replaces="oldest"`, rule 3 is another one, that of the simulator of EpTO's authors: what comes into a
full view takes the place of its oldest entry, and an entry that the view has already gets the age that came.
Entries are then copied, not swapped, and the dead are forgotten sooner.

So the link from the asker to the oldest neighbour turns round, and nodes stay about equally well known. A
neighbour that does not answer is gone from the view already: that is how the dead are forgotten, and why
the oldest is asked. A living one whose answer was lost is in other views, and comes back.

Answers may take longer than a period. A node remembers what it sent in its last `patience` shuffles. An
answer counts once, if it is to one of those and from the node that was asked. Others are ignored: what came
too late is as if it were lost, and nobody gets into a view by answers to questions that were never put.

All choices are draws of the node's seed, named by what they are for and by the number of the shuffle (or of
the answer), both counted from 0 in each life.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, get_args

from ordercast.components.sampling.draws import choose, draw, stream
from ordercast.components.sampling.messages import (
    AGE_MAX,
    NUMBER_MAX,
    SHUFFLE_MAX,
    Entry,
    ShuffleAnswer,
    ShuffleRequest,
)
from ordercast.components.sampling.sampler import TARGETS, Sampler
from ordercast.core import (
    MILLISECOND,
    Env,
    Explanation,
    LocalError,
    Message,
    Nanos,
    NodeId,
    Options,
    RemoteError,
)
from ordercast.core.ids import NODE_MAX

WAITS = 101
"""The stream of the waits before shuffles: step 0 is the one before the first."""
OFFERS = 102
"""The stream that chooses what a request carries."""
ANSWERS = 103
"""The stream that chooses what an answer carries."""
CONTACTS = 104
"""The stream that chooses whom a node knows when it starts, where contacts are drawn from all nodes."""

Replaces = Literal["sent", "oldest"]

VIEW_MAX = 1024
PATIENCE_MAX = 64
SHUFFLE_TIMER = "shuffle"


class CyclonOptions(Options, frozen=True):
    """Sizes and times; all nodes of a system use the same."""

    view: int = 20
    """The largest number of neighbours that a node knows."""
    length: int = 8
    """How many entries two nodes exchange, including the asker's own."""
    period_ns: Nanos = 100 * MILLISECOND
    """Time between two shuffles that a node starts."""
    jitter_ns: Nanos = MILLISECOND
    """How much shorter or longer a period may be."""
    patience: int = 4
    """How many latest shuffles may still get an answer: the time of a round trip, in periods."""
    replaces: Replaces = "sent"
    """Which entries of a full view make room: those that were sent, or the oldest."""

    def __post_init__(self) -> None:
        if not 1 <= self.view <= VIEW_MAX:
            raise LocalError(f"cyclon: view must be 1 to {VIEW_MAX} neighbours, not {self.view}")
        if not 1 <= self.length <= min(self.view, SHUFFLE_MAX):
            raise LocalError(
                f"cyclon: length is {self.length}; it must be at least 1 entry (the asker's own) "
                f"and at most {min(self.view, SHUFFLE_MAX)} for a view of {self.view}"
            )
        if self.period_ns < 1:
            raise LocalError(
                f"cyclon: period_ns, the time between shuffles, must be at least 1 ns, not {self.period_ns}"
            )
        if not 0 <= self.jitter_ns < self.period_ns:
            raise LocalError(
                f"cyclon: jitter_ns is {self.jitter_ns}; it shortens or lengthens a period, "
                f"so it must be at least 0 and less than period_ns, which is {self.period_ns}"
            )
        if not 1 <= self.patience <= PATIENCE_MAX:
            raise LocalError(f"cyclon: patience must be 1 to {PATIENCE_MAX} shuffles, not {self.patience}")
        if self.replaces not in get_args(Replaces):
            raise LocalError(f"cyclon: replaces must be 'sent' or 'oldest', not '{self.replaces}'")


class _Asked:
    """A shuffle that waits for its answer."""

    __slots__ = ("node", "number", "sent")

    def __init__(self, number: int, node: NodeId, sent: list[NodeId]) -> None:
        self.number = number
        self.node = node
        self.sent = sent


class Cyclon(Sampler):
    """One node's part in the shuffling."""

    def __init__(
        self,
        env: Env,
        seed: int,
        contacts: Sequence[NodeId],
        options: CyclonOptions | None = None,
        nodes: range = range(NODE_MAX + 1),
    ) -> None:
        """Begin with `contacts` as neighbours, and take in no node but those in `nodes`."""
        self._options = options or CyclonOptions()
        super().__init__(env)
        self._nodes = nodes
        self._targets = stream(seed, TARGETS)
        self._waits = stream(seed, WAITS)
        self._offers = stream(seed, OFFERS)
        self._answers = stream(seed, ANSWERS)
        self._contacts = self._checked_contacts(contacts)
        self._view: list[NodeId] = []
        self._ages: list[int] = []
        self._asked: list[_Asked | None] = [None] * self._options.patience
        self.shuffles = 0
        """Shuffles that this node started."""
        self.answers = 0
        """Shuffles that others started and this node answered."""
        self.purged = 0
        """Neighbours that were asked and did not answer in time."""
        self.ignored = 0
        """Answers that came too late, twice, or unasked."""

    def on_start(self, saved: Mapping[str, bytes]) -> None:
        """Know the contacts, and shuffle first after a random part of a period."""
        self._return_to_contacts()
        self.env.set_timer(SHUFFLE_TIMER, draw(self._waits, 0, 0) % self._options.period_ns)

    def on_timer(self, name: str) -> None:
        """Start a shuffle."""
        self._shuffle()
        self.shuffles += 1
        self.env.set_timer(SHUFFLE_TIMER, self._wait(self.shuffles))

    def on_message(self, source: NodeId, message: Message) -> None:
        """Answer a request, or take in an answer."""
        if isinstance(message, ShuffleRequest):
            self._check(source, message, self._options.length - 1)
            self._answer(source, message)
        elif isinstance(message, ShuffleAnswer):
            self._check(source, message, self._options.length)
            self._accept(source, message)

    def on_nodes(self, roles: Mapping[NodeId, str]) -> None:
        """Take in newcomers from now on, and forget who was removed."""
        self._nodes = range(min(self._nodes.start, *roles), max(self._nodes.stop, 1 + max(roles)))
        others = [node for node in sorted(roles) if node != self.env.me]
        self._contacts = [node for node in self._contacts if node in roles] or others[:1]
        kept = [(node, age) for node, age in self.entries() if node in roles]
        self._view, self._ages = [node for node, _ in kept], [age for _, age in kept]

    def sample(self, round_number: int, count: int) -> list[NodeId]:
        """Neighbours, each as likely as the other; if they are too few, those too that were just asked."""
        chosen = [self._view[place] for place in choose(self._targets, round_number, count, len(self._view))]
        if len(chosen) < count:
            chosen += self._asked_lately()[: count - len(chosen)]
        return chosen

    def known(self) -> Sequence[NodeId]:
        """The neighbours, in the order of their places in the view, and those that were just asked."""
        return (*self._view, *self._asked_lately())

    def _asked_lately(self) -> list[NodeId]:
        """Who is out of the view because an answer is due, the last asked first.

        In a group that is hardly larger than a view, these are a good part of all there are.
        """
        nodes: list[NodeId] = []
        for number in range(self.shuffles - 1, max(-1, self.shuffles - 1 - self._options.patience), -1):
            asked = self._asked[number % self._options.patience]
            if asked and asked.number == number and asked.node not in self._view and asked.node not in nodes:
                nodes.append(asked.node)
        return nodes

    def explain(self) -> Explanation:
        """How many neighbours there are, and how the shuffles went; nothing waits."""
        return Explanation(
            {
                "peers": len(self._view),
                "shuffles": self.shuffles,
                "shuffles answered": self.answers,
                "peers purged": self.purged,
            }
        )

    def entries(self) -> list[Entry]:
        """The neighbours with their ages, in the order of their places in the view."""
        return list(zip(self._view, self._ages, strict=True))

    def _wait(self, number: int) -> Nanos:
        jitter = self._options.jitter_ns
        return self._options.period_ns - jitter + draw(self._waits, number, 0) % (2 * jitter + 1)

    def _checked_contacts(self, contacts: Sequence[NodeId]) -> list[NodeId]:
        for node in contacts:
            if node not in self._nodes:
                raise LocalError(
                    f"cyclon: contact {node} is not one of the nodes "
                    f"{self._nodes.start} to {self._nodes.stop - 1}"
                )
        others = [node for node in dict.fromkeys(contacts) if node != self.env.me]
        return others[: self._options.view]

    def _return_to_contacts(self) -> None:
        self._view = list(self._contacts)
        self._ages = [0] * len(self._contacts)

    def _shuffle(self) -> None:
        """Rule 1. With nobody to ask, the wait goes on: others may know this node."""
        number = self.shuffles
        slot = number % self._options.patience
        self.purged += self._asked[slot] is not None
        self._asked[slot] = None
        if not self._view:
            self._return_to_contacts()
        if not self._view:
            return
        # An age that a peer made up must not grow into one that no peer accepts.
        self._ages = [min(age + 1, AGE_MAX) for age in self._ages]
        oldest = self._ages.index(max(self._ages))
        node = self._view.pop(oldest)
        del self._ages[oldest]
        places = choose(self._offers, number, self._options.length - 1, len(self._view))
        self._asked[slot] = _Asked(number, node, [self._view[place] for place in places])
        self.env.send(node, ShuffleRequest(number, self._at(places)))

    def _answer(self, source: NodeId, request: ShuffleRequest) -> None:
        """Rule 2, and rule 3 for the receiver."""
        others = [place for place, node in enumerate(self._view) if node != source]
        chosen = choose(self._answers, self.answers, self._options.length, len(others))
        places = [others[index] for index in chosen]
        self.answers += 1
        self.env.send(source, ShuffleAnswer(request.number, self._at(places)))
        self._merge([(source, 0), *request.entries], [self._view[place] for place in places])

    def _accept(self, source: NodeId, answer: ShuffleAnswer) -> None:
        """Rule 3 for the asker."""
        slot = answer.number % self._options.patience
        asked = self._asked[slot]
        if asked is None or asked.number != answer.number or asked.node != source:
            self.ignored += 1
            return
        self._asked[slot] = None
        self._merge(answer.entries, asked.sent)

    def _merge(self, received: Sequence[Entry], sent: Sequence[NodeId]) -> None:
        """Rule 3, in one of its two forms."""
        if self._options.replaces == "oldest":
            self._merge_over_oldest(received)
        else:
            self._merge_over_sent(received, sent)

    def _merge_over_oldest(self, received: Sequence[Entry]) -> None:
        """What comes in takes a free place or that of the oldest, which may have come in just now."""
        view, ages = self._view, self._ages
        for node, age in received:
            if node in view:
                ages[view.index(node)] = age
            elif len(view) < self._options.view:
                view.append(node)
                ages.append(age)
            else:
                place = ages.index(max(ages))
                view[place], ages[place] = node, age

    def _merge_over_sent(self, received: Sequence[Entry], sent: Sequence[NodeId]) -> None:
        """What was sent may have left the view meanwhile, through another shuffle."""
        view, ages = self._view, self._ages
        came = [node for node, _ in received]
        replaceable = iter([view.index(node) for node in sent if node in view and node not in came])
        for node, age in received:
            if node in view:
                place = view.index(node)
                ages[place] = min(ages[place], age)
            elif len(view) < self._options.view:
                view.append(node)
                ages.append(age)
            elif (free := next(replaceable, None)) is not None:
                view[free] = node
                ages[free] = age

    def _at(self, places: Sequence[int]) -> tuple[Entry, ...]:
        return tuple((self._view[place], self._ages[place]) for place in places)

    def _check(self, source: NodeId, message: ShuffleRequest | ShuffleAnswer, limit: int) -> None:
        """Refuse what no correct peer sends: nobody names itself, the other side or the same node twice."""
        if source == self.env.me or source not in self._nodes:
            raise RemoteError(
                f"cyclon: a shuffle came from node {source}, which is not a peer of node {self.env.me}"
            )
        if not 0 <= message.number <= NUMBER_MAX:
            raise RemoteError(f"cyclon: shuffle number {message.number} of node {source} is out of range")
        entries = message.entries
        if len(entries) > limit:
            raise RemoteError(f"cyclon: node {source} sent {len(entries)} entries; the limit is {limit}")
        seen = [self.env.me, source]
        for node, age in entries:
            if node in seen:
                raise RemoteError(
                    f"cyclon: node {source} names node {node}, which is itself, its peer or named before"
                )
            if node not in self._nodes or not 0 <= age <= AGE_MAX:
                raise RemoteError(
                    f"cyclon: node {source} names node {node} of age {age}, which is out of range"
                )
            seen.append(node)
