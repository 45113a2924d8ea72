"""State: a node that joins a group gets the state of its application as its view finds it, and nothing less.

Where states are promised, each notice that a node joined a group is followed by a state, before the view and
before any message of the group. The state is the one that a member gave which was asked for it at the
beginning of that view, before it delivered any message of the view. All who install a view then have the same
messages of the group, by delivery or by the state with which they began. What a state stands for is not
delivered again. A state from nobody stands for nothing.

The rows of each node are in order, but those of different nodes need not be. So nodes are compared at the
end. What an application has is counted (`trace/tally.py`); sets are made only to name a difference.
"""

from zlib import crc32

from ordercast.core import GroupId, MessageId, Nanos, NodeId, format_ns
from ordercast.judge.finding import messages_named
from ordercast.judge.online.case import Case, Handler
from ordercast.judge.online.oracle import Oracle
from ordercast.trace import CARRYING, CONFIGURING, ENTERING, LEAVING, LOST, TALLY, Event, Kind
from ordercast.trace.tally import Tally

Key = tuple[NodeId, GroupId, int]
"""Who was asked for the state of which group, at which view."""


class _Contents:
    """What an application has of a group: what its state stands for, and what it has delivered since."""

    __slots__ = ("base", "own", "tally")

    def __init__(self, base: Key | None = None) -> None:
        self.base = base
        self.own: dict[MessageId, None] = {}
        self.tally = Tally()

    def add(self, message: MessageId) -> None:
        if message not in self.own:
            self.own[message] = None
            self.tally.add(message)


class _Mark:
    """The contents as they were at a row."""

    __slots__ = ("contents", "count", "event", "total")

    def __init__(self, contents: _Contents, event: Event) -> None:
        self.contents = contents
        self.event = event
        self.count, self.total = contents.tally.count, contents.tally.total


class StateTransfer(Oracle):
    """Newcomers begin with the state of the others."""

    gated = False

    def __init__(self, name: str, case: Case) -> None:
        super().__init__(name, case)
        groups = case.description.groups
        self._inside = {(node, group) for group, nodes in groups.items() for node in nodes}
        self._contents: dict[tuple[NodeId, GroupId], _Contents] = {}
        self._awaited: dict[tuple[NodeId, GroupId], Event] = {}
        """Who has joined which group, and has not got its state."""
        self._views: dict[tuple[NodeId, GroupId], tuple[int, int]] = {}
        """The view that each node is in, and how many messages of the group it had when it began."""
        self._installed: dict[tuple[GroupId, int], list[_Mark]] = {}
        self._asked: dict[Key, _Mark] = {}
        self._given: dict[Key, Event] = {}
        self._got: list[tuple[Event, GroupId, _Contents]] = []

    def handlers(self) -> dict[Kind, Handler]:
        """Messages, views, states, and who comes and goes."""
        return {
            **dict.fromkeys(CARRYING, self._on_deliver),
            **dict.fromkeys(ENTERING, self._on_joined),
            **dict.fromkeys(LEAVING, self._on_left),
            **dict.fromkeys(CONFIGURING, self._on_view),
            Kind.STATE_WANTED: self._on_wanted,
            Kind.GIVE_STATE: self._on_given,
            Kind.STATE: self._on_state,
            Kind.CRASH: self._on_crash,
            Kind.RECOVER: self._on_recover,
        }

    # Rows of one node

    def _on_deliver(self, event: Event) -> None:
        if event.message is None:
            return
        mine = [group for group in self._groups(event) if (event.node, group) in self._inside]
        if mine and all((event.node, group) in self._awaited for group in mine):
            self._early(event, mine[0], f"delivered {messages_named([event.message])}", (event.message,))
        for group in mine:
            self._of(event.node, group).add(event.message)

    def _early(self, event: Event, group: GroupId, what: str, messages: tuple[MessageId, ...] = ()) -> None:
        """Something came before the state; told once."""
        del self._awaited[event.node, group]
        what = f"{what} of group {group}, which it had joined, before it got the state of the group"
        self._tell(event, (event.node,), what, messages)

    def _on_joined(self, event: Event) -> None:
        for group in self._groups(event):
            self._inside.add((event.node, group))
            self._awaited[event.node, group] = event

    def _on_left(self, event: Event) -> None:
        for group in self._groups(event):
            self._inside.discard((event.node, group))
            self._awaited.pop((event.node, group), None)

    def _on_view(self, event: Event) -> None:
        for group in self._groups(event):
            if event.node not in (event.members or ()):
                continue
            if (event.node, group) in self._awaited:
                self._early(event, group, f"installed view {event.config}")
                continue
            mark = _Mark(self._of(event.node, group), event)
            self._views[event.node, group] = (event.config or 0, mark.count)
            self._installed.setdefault((group, event.config or 0), []).append(mark)

    def _on_wanted(self, event: Event) -> None:
        for group in self._groups(event):
            mark = _Mark(self._of(event.node, group), event)
            config, count = self._views.get((event.node, group), (None, 0))
            if (config, count) != (event.config, mark.count):
                what = f"was asked for the state of group {group} at view {event.config}, but not as it began"
                self._tell(event, (event.node,), what, tuple(mark.contents.own)[count:])
            self._asked[event.node, group, event.config or 0] = mark

    def _on_given(self, event: Event) -> None:
        for group in self._groups(event):
            self._given[event.node, group, event.config or 0] = event

    def _on_state(self, event: Event) -> None:
        for group in self._groups(event):
            joined = self._awaited.pop((event.node, group), None)
            if joined is None or joined.config != event.config:
                what = f"got a state of group {group} at view {event.config}, which it had not just joined"
                self._tell(event, (event.node,), what)
            base = None if event.peer is None else (event.peer, group, event.config or 0)
            self._contents[event.node, group] = _Contents(base)
            self._got.append((event, group, self._contents[event.node, group]))

    def _on_crash(self, event: Event) -> None:
        self._awaited = {key: joined for key, joined in self._awaited.items() if key[0] != event.node}

    def _on_recover(self, event: Event) -> None:
        for group, founders in self.description.groups.items():
            self._contents.pop((event.node, group), None)
            if event.label == LOST:
                self._inside.discard((event.node, group))
                self._inside.update({(event.node, group)} if event.node in founders else ())

    def _groups(self, event: Event) -> list[GroupId]:
        """The groups of a row that the run has."""
        return [group for group in event.groups or () if group in self.description.groups]

    def _of(self, node: NodeId, group: GroupId) -> _Contents:
        return self._contents.setdefault((node, group), _Contents())

    # Rows of several nodes

    def finish(self) -> None:
        """Compare what nodes have."""
        for got in self._got:
            self._judge_state(*got)
        for key, event in self._given.items():
            self._judge_given(key, event)
        for (group, config), marks in self._installed.items():
            self._judge_view(group, config, sorted(marks, key=lambda mark: mark.event.node))
        for (node, group), joined in self._awaited.items() if self.description.complete else ():
            at = format_ns(joined.time_ns)
            detail = f"node {node} joined group {group} at {at}, and never got its state"
            self.report((node,), (), (joined.time_ns,), detail, at_end=True)

    def _judge_state(self, event: Event, group: GroupId, contents: _Contents) -> None:
        if contents.base is None:
            return
        donor, what = contents.base[0], f"got the state of group {group} at view {event.config} from node"
        asked, given = self._asked.get(contents.base), self._given.get(contents.base)
        if asked is None or given is None or event.node not in (asked.event.members or ()):
            self._compare(event, (event.node, donor), f"{what} {donor}, which did not give it to this node")
        elif (given.size, given.digest) != (event.size, event.digest):
            detail = f"{what} {donor} with {event.size} bytes and digest {event.digest}; node {donor} gave"
            detail = f"{detail} {given.size} bytes with digest {given.digest}"
            self._compare(event, (event.node, donor), detail)
        stands_for = self._all(contents.base)
        twice = tuple(message for message in contents.own if message in stands_for)
        if twice:
            detail = f"delivered {messages_named(twice)}, which its state of group {group} stands for already"
            self._compare(event, (event.node, donor), detail, twice)

    def _judge_given(self, key: Key, event: Event) -> None:
        """A state that is a tally must be that of what its node had delivered."""
        mark = self._asked.get(key)
        sums = None if mark is None else self._sums(mark)
        if event.label != TALLY or sums is None:
            return
        if crc32(Tally(*sums).pack()) != event.digest:
            what = (
                f"gave a state of group {key[1]} at view {key[2]} that is not that of the {sums[0]} messages"
            )
            self._compare(event, (event.node,), f"{what} that it had then")

    def _judge_view(self, group: GroupId, config: int, marks: list[_Mark]) -> None:
        first = next((mark for mark in marks if self._sums(mark) is not None), None)
        for mark in marks if first is not None else ():
            sums = self._sums(mark)
            if first is None or sums is None or sums == self._sums(first):
                continue
            one, other = self._messages(first), self._messages(mark)
            differing = tuple(sorted(one ^ other))
            node, witness = mark.event.node, first.event.node
            what = (
                f"installed view {config} of group {group} with {len(other)} messages, node {witness} with"
                f" {len(one)}; they differ in {messages_named(differing)}"
            )
            self._compare(mark.event, (node, witness), what, differing)

    def _sums(self, mark: _Mark) -> tuple[int, int] | None:
        """The count and the sum of all messages at a mark; None if nobody was asked for its state."""
        chain = self._chain(mark)
        if chain[-1].contents.base is not None:
            return None
        return sum(one.count for one in chain), sum(one.total for one in chain) % (1 << 64)

    def _messages(self, mark: _Mark) -> set[MessageId]:
        return {message for one in self._chain(mark) for message in list(one.contents.own)[: one.count]}

    def _all(self, base: Key) -> set[MessageId]:
        """All messages that a state stands for."""
        asked = self._asked.get(base)
        return set() if asked is None else self._messages(asked)

    def _chain(self, mark: _Mark) -> list[_Mark]:
        """A mark, the one that its state was taken at, and so on; each is of an earlier view."""
        chain, before = [mark], 1 << 63
        while (base := chain[-1].contents.base) is not None and base[2] < before:
            asked = self._asked.get(base)
            if asked is None:
                break
            chain.append(asked)
            before = base[2]
        return chain

    # Findings

    def _tell(
        self, event: Event, nodes: tuple[NodeId, ...], what: str, messages: tuple[MessageId, ...] = ()
    ) -> None:
        detail = f"node {event.node} {what} (at {format_ns(event.time_ns)})"
        self.report(nodes, messages, (event.time_ns,), detail)

    def _compare(
        self, event: Event, nodes: tuple[NodeId, ...], what: str, messages: tuple[MessageId, ...] = ()
    ) -> None:
        time_ns: Nanos = event.time_ns
        detail = f"node {event.node} {what} (at {format_ns(time_ns)})"
        self.report(nodes, messages, (time_ns,), detail, at_end=True)
