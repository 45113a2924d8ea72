"""Honest traces of a service whose branches split and meet again, drawn from a seed.

A branch has members, clients, views and operations. It splits in two: one part goes on with a new primary,
which knows a prefix of the operations. When two branches meet, the one with the greater view survives. The
members of the other are told what is undone, take over a state, and go on in the view that survives.
"""

from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

from ordercast.core import MessageId, NodeId
from tests.check.branch_traces import FIRST, BranchTrace, Name

REPLICAS = (0, 1, 2)
CLIENTS = (3, 4)
STEPS = 40
VIEW = 1 << 8
"""Clocks begin anew with each view."""


class Operation(NamedTuple):
    """An operation at its place."""

    clock: int
    issuer: int
    config: int
    message: MessageId


class Begun(NamedTuple):
    """A view, the one before it, and the clock behind which it begins."""

    name: Name
    before: Name
    clock: int


INITIAL = Begun(FIRST, FIRST, -1)


@dataclass
class Branch:
    """A part of the group that goes on by itself."""

    members: set[NodeId]
    view: Begun = INITIAL
    operations: list[Operation] = field(default_factory=list)
    reads: int = 0
    """How many clocks reads have taken since the last operation."""

    @property
    def rank(self) -> tuple[int, int]:
        """Which of two branches survives."""
        return self.view.name[1], self.view.name[0]

    @property
    def clock(self) -> int:
        """The last clock that was given."""
        last = self.operations[-1].clock if self.operations else 0
        return max(last, self.view.name[0] * VIEW) + self.reads


class Splits:
    """A trace as it grows."""

    def __init__(self, seed: int, *, heal: bool = True) -> None:
        self.rng = Random(f"splits/{seed}")
        self.trace = BranchTrace(complete=heal)
        self.branches = [Branch(set(REPLICAS))]
        self.down: set[NodeId] = set()
        self.done = dict.fromkeys(REPLICAS, 0)
        """How many operations of its branch each replica has delivered, or has in its state."""
        self.precedence = dict.fromkeys(REPLICAS, 0)
        """The greatest precedence that each replica has used."""
        self.at: dict[NodeId, Branch] = dict.fromkeys(CLIENTS, self.branches[0])
        """The branch that each client knows."""
        self.answered: dict[NodeId, list[int]] = {client: [] for client in CLIENTS}
        """The clocks of the answers that each client relies on."""

    def run(self) -> BranchTrace:
        """Draw some steps, and perhaps let all branches meet."""
        steps = (self.operate, self.operate, self.operate, self.read, self.split, self.meet, self.restart)
        for _ in range(STEPS):
            self.rng.choice(steps)()
        if self.trace.description.complete:
            while len(self.branches) > 1:
                self.meet()
            for client in CLIENTS:
                self._follow(client, self.branches[0])
            self._catch_up(self.branches[0], all_of_them=True)
        return self.trace

    def operate(self) -> None:
        """A client calls an operation, some members deliver it at once, and the client may get an answer."""
        client = self.rng.choice(CLIENTS)
        branch = self._reached(client)
        message = self.trace.call(client)
        issuer, config = branch.view.name[1], branch.view.name[0]
        branch.operations.append(Operation(branch.clock + 1, issuer, config, message))
        branch.reads = 0
        self._catch_up(branch)
        self.trace.answer(message, branch.clock, issuer)
        self.answered[client].append(branch.clock)

    def read(self) -> None:
        """A client reads: its answer has a clock of its own."""
        client = self.rng.choice(CLIENTS)
        branch = self._reached(client)
        message = self.trace.read(client)
        branch.reads += 1
        self.trace.answer(message, branch.clock, branch.view.name[1])
        self.answered[client].append(branch.clock)

    def _reached(self, client: NodeId) -> Branch:
        """The branch that takes the call of a client: the one it knows, or a greater one."""
        greater = [branch for branch in self.branches if branch.rank > self.at[client].rank]
        if greater and self.rng.random() < 0.3:
            self._follow(client, self.rng.choice(greater))
        return self.at[client]

    def _catch_up(self, branch: Branch, *, all_of_them: bool = False) -> None:
        """Members deliver some of the operations that they lack; the primary delivers all."""
        for node in sorted(branch.members):
            lacking = branch.operations[self.done[node] :]
            primary = node == branch.view.name[1] % len(REPLICAS)
            if not (primary or all_of_them):
                lacking = lacking[: self.rng.randint(0, len(lacking))]
            for clock, issuer, config, message in lacking:
                self.trace.order(message, clock, issuer, node, config=config)
            self.done[node] += len(lacking)

    def split(self) -> None:
        """Some members go on by themselves, with a new primary, from what one of them has."""
        branch = self.rng.choice(self.branches)
        apart = {node for node in branch.members if self.rng.random() < 0.5}
        if not apart:
            return
        primary = self.rng.choice(sorted(apart))
        known = max(self.done[node] for node in apart)
        for node in apart:  # all have what one of them has before the view begins
            for clock, issuer, config, message in branch.operations[self.done[node] : known]:
                self.trace.order(message, clock, issuer, node, config=config)
            self.done[node] = known
        floor = max(self.precedence[primary], branch.view.name[1]) + 1
        precedence = floor + (primary - floor) % len(REPLICAS)
        self.precedence[primary] = precedence
        begin = branch.operations[known - 1].clock if known else 0
        view = Begun((branch.view.name[0] + 1, precedence), branch.view.name, begin)
        branch.members -= apart
        self.branches.append(Branch(apart, view, branch.operations[:known]))
        self.trace.install(*view, *sorted(apart))
        if not branch.members:
            self.branches.remove(branch)
            self._leave(branch, self.branches[-1])

    def meet(self) -> None:
        """Two branches meet; the members of one of them come to the other."""
        if len(self.branches) < 2:
            return
        lesser, greater = sorted(self.rng.sample(self.branches, 2), key=lambda branch: branch.rank)
        self.branches.remove(lesser)
        for node in sorted(lesser.members):
            self._undo(node, lesser, greater)
            self._take_in(node, greater)
        self._leave(lesser, greater)

    def _leave(self, lesser: Branch, greater: Branch) -> None:
        """The clients of a branch that is no more come to another one, which has a greater view."""
        for client in CLIENTS:
            if self.at[client] is lesser:
                self._follow(client, greater)

    def _undo(self, node: NodeId, lesser: Branch, greater: Branch) -> None:
        common = _common(lesser, greater)
        clock, issuer = (common.clock, common.issuer) if common else (0, 0)
        if any(one.clock > clock for one in lesser.operations[: self.done[node]]):
            self.trace.undo(node, clock, issuer, greater.view.name)

    def _follow(self, client: NodeId, branch: Branch) -> None:
        """A client comes to a greater branch; it is told which of its answers do not hold there."""
        before = self.at[client]
        self.at[client] = branch
        if before is branch:
            return
        common = _common(before, branch)
        end = common.clock if common else 0
        if any(clock > end for clock in self.answered[client]):
            self.trace.undo(client, end, 0, branch.view.name)
            self.answered[client] = [clock for clock in self.answered[client] if clock <= end]

    def _take_in(self, node: NodeId, branch: Branch) -> None:
        """A node takes over the state of a branch."""
        branch.members.add(node)
        self.done[node] = len(branch.operations)
        if branch.operations:
            last = branch.operations[-1]
            self.trace.take_state(node, last.clock, last.issuer)
        view = branch.view
        self.trace.install(view.name, view.before, max(view.clock, 0), node, anew=True)
        if view.name == FIRST:
            self.trace.events[-1] = self.trace.events[-1]._replace(numbers=None)

    def restart(self) -> None:
        """A member that is not alone crashes and comes back without its memory."""
        branch = self.rng.choice(self.branches)
        if len(branch.members) < 2:
            return
        node = self.rng.choice(sorted(branch.members - {branch.view.name[1] % len(REPLICAS)}))
        self.trace.crash(node)
        self.trace.recover(node, self.rng.choice(("saved", "lost")))
        self._take_in(node, branch)


def _common(one: Branch, other: Branch) -> Operation | None:
    """The last operation that two branches have in common."""
    common = None
    for ours, theirs in zip(one.operations, other.operations, strict=False):
        if ours != theirs:
            break
        common = ours
    return common
