"""The replicated state of the store: groups, their members, the sequencing graph, and the plans of groups.

Commands come out of a consensus log in the same order at every replica, and `apply` is deterministic. A
*change* takes two commands. `Prepare` says what changes: requests of subscribers, nodes that came or went.
The graph changes, and the epochs of the trees that it touches are to be sealed. `Decide` says how far the
logs of their groups have come, and the next epochs begin there. One change is under way at a time; while it
is, more may be prepared, as when a node fails whose report is needed.
"""

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import TypeAlias

import msgspec

from ordercast.components.sequencing_graph import (
    AtomId,
    GraphRecord,
    SequencingGraph,
    add_group,
    build,
    load_graph,
    remove_group,
    save_graph,
    subscribe,
    unsubscribe,
)
from ordercast.core import GroupId, NodeId
from ordercast.protocols.atoms.commands import Command, Decide, Final, Greet, Prepare, Request
from ordercast.protocols.atoms.planning import SENDERS, Runs, holders_of, hops_of, members_of, trees
from ordercast.protocols.atoms.records import (
    Begin,
    GroupPlan,
    Hop,
    Membership,
    Natural,
    Post,
    Record,
    Serial,
    Tenure,
)
from ordercast.protocols.atoms.sites import first_sites, next_sites

BASES_MAX = 256
"""A node that has missed more plans of a group than this begins its log anew."""
Move: TypeAlias = tuple[NodeId, GroupId, bool, bool]
"""A subscriber, a group, whether it comes, and whether it was lost."""


class Planned(Record, frozen=True):
    """A change that is under way."""

    groups: tuple[Natural, ...]
    moves: tuple[tuple[Natural, Natural, bool, bool], ...]
    finals: tuple[Final, ...] = ()
    """How far logs have come, as far as that is decided."""


class _Snapshot(Record, frozen=True):
    change: Natural
    version: Natural
    next_label: Natural
    graph: GraphRecord
    sites: tuple[tuple[Natural, Natural], ...]
    plans: tuple[GroupPlan, ...]
    lives: tuple[tuple[Natural, Natural], ...]
    up: tuple[Natural, ...]
    asked: tuple[tuple[Natural, Serial], ...]
    memberships: tuple[tuple[Natural, tuple[Membership, ...]], ...]
    planned: Planned | None


_encoder = msgspec.msgpack.Encoder()
_snapshots = msgspec.msgpack.Decoder(_Snapshot)


class Registry:
    """Everything that the store knows."""

    def __init__(
        self,
        members: Mapping[GroupId, Iterable[NodeId]],
        nodes: tuple[NodeId, ...],
        copies: int,
        grouping: str,
        causal: bool,
    ) -> None:
        self._copies = copies
        self._extra = (SENDERS,) if causal else ()
        first = {group: (*those, *self._extra) for group, those in members.items() if tuple(those)}
        self.graph: SequencingGraph = build(first)
        self.sites: dict[AtomId, NodeId] = first_sites(self.graph, nodes, grouping)
        self.change = 0
        """How many changes are decided."""
        self.version = 0
        """That of the latest plan."""
        self.next_label = 1
        self.plans: dict[GroupId, GroupPlan] = {}
        self.lives: dict[NodeId, int] = dict.fromkeys(nodes, 1)
        self.up: set[NodeId] = set(nodes)
        self.asked: dict[NodeId, Serial] = {}
        """The life and the number of each subscriber's last request."""
        self.memberships: dict[NodeId, dict[GroupId, Membership]] = {}
        self.planned: Planned | None = None
        self._plan_all(self.graph.groups, {}, ())
        for group, plan in self.plans.items():
            for node in members_of(self.graph, group):
                self.memberships.setdefault(node, {})[group] = Membership(group, plan.label, 0)

    # What is asked

    def sealing(self) -> list[GroupPlan]:
        """The plans of the epochs that the change under way ends."""
        groups = () if self.planned is None else self.planned.groups
        return [self.plans[group] for group in groups if group in self.plans]

    def undecided(self) -> list[GroupPlan]:
        """Those of them of which it is not decided how far their logs have come."""
        known = set() if self.planned is None else {final.group for final in self.planned.finals}
        return [plan for plan in self.sealing() if plan.group not in known]

    def reporter(self, plan: GroupPlan) -> NodeId | None:
        """Who says how far a log has come: everything that a subscriber may have seen is there."""
        return next((post.node for post in reversed(plan.holders) if post.node in self.up), None)

    def alive(self, post: Post) -> bool:
        """Whether a node is up, in the same life."""
        return post.node in self.up and self.lives[post.node] == post.life

    @property
    def has_enough(self) -> bool:
        """Whether so many nodes are up that each log can be on enough of them."""
        return len(self.up) >= self._copies

    def is_open(self, group: GroupId) -> bool:
        """Whether a group has members."""
        return group in self.plans and bool(self.plans[group].hops)

    def concerns(self, node: NodeId) -> bool:
        """Whether the change under way is about a subscriber."""
        return self.planned is not None and any(move[0] == node for move in self.planned.moves)

    # Commands

    def apply(self, command: Command) -> None:
        """Carry out a command; one that does not fit any more changes nothing."""
        match command:
            case Prepare():
                if command.change == self.change + 1:
                    self._prepare(command)
            case Decide():
                if command.change == self.change + 1 and self.planned is not None:
                    self._decide(self.planned, command.finals)
            case Greet(node, life):
                if life > self.asked.get(node, (0, 0))[0]:
                    self.asked[node] = (life, 0)

    def _prepare(self, command: Prepare) -> None:
        before = self.planned or Planned((), ())
        for post in command.up:
            self.up.add(post.node)
            self.lives[post.node] = max(self.lives[post.node], post.life)
        for node in command.down:
            if len(self.up) > 1:
                self.up.discard(node)
        moves: list[Move] = [*before.moves]
        for request in command.requests:
            if self._is_next(request):
                self.asked[request.node] = (request.life, request.number)
                moves += self._move(request.node, request.group, request.wants)
        for group, node in command.lost:
            moves += [(*move[:3], True) for move in self._move(node, group, wants=False)]
        touched = {move[1] for move in moves} | set(before.groups) | self._failed()
        self.planned = Planned(tuple(sorted(self._closure(touched))), tuple(moves), before.finals)

    def _is_next(self, request: Request) -> bool:
        life, number = self.asked.get(request.node, (request.life, 0))
        return (request.life, request.number) == (life, number + 1)

    def _move(self, node: NodeId, group: GroupId, wants: bool) -> list[Move]:
        """Change the graph; nothing if the subscriber is where it wants to be."""
        is_there = group in self.graph.groups
        if wants == (is_there and node in self.graph.members(group)):
            return []
        if wants and is_there:
            subscribe(self.graph, node, group)
        elif wants:
            add_group(self.graph, group, (node, *self._extra))
        elif members_of(self.graph, group) == (node,):
            remove_group(self.graph, group)
        else:
            unsubscribe(self.graph, node, group)
        return [(node, group, wants, False)]

    def _failed(self) -> set[GroupId]:
        """Groups that depend on a node that is gone."""
        return {group for group, plan in self.plans.items() if not all(map(self.alive, plan.posts()))}

    def _closure(self, touched: set[GroupId]) -> set[GroupId]:
        """All groups that are, or were, in a tree with one of these."""
        kin: dict[tuple[str, int], list[GroupId]] = {}
        for group, root in trees(self.graph, self.graph.groups).items():
            kin.setdefault(("root", root), []).append(group)
        for group, plan in self.plans.items():
            kin.setdefault(("label", plan.label), []).append(group)
        of: dict[GroupId, list[list[GroupId]]] = {}
        for those in kin.values():
            for group in those:
                of.setdefault(group, []).append(those)
        found, waiting = set(touched), sorted(touched)
        while waiting:
            for those in of.pop(waiting.pop(), []):
                waiting += [group for group in those if group not in found]
                found.update(those)
        return found

    def _decide(self, planned: Planned, finals: tuple[Final, ...]) -> None:
        sealed = {plan.group for plan in self.sealing()}
        known = {final.group: final for final in (*finals, *planned.finals)}
        if not known.keys() <= sealed:
            return
        if len(known) < len(sealed) or not self.has_enough:
            self.planned = msgspec.structs.replace(planned, finals=tuple(known.values()))
            return
        self.change += 1
        self.planned = None
        self.sites = next_sites(self.graph, self.sites, self.up)
        self._plan_all(planned.groups, known, planned.moves)
        for node, group, wants, lost in planned.moves:
            self._enter(node, group, wants, lost)

    def _enter(self, node: NodeId, group: GroupId, wants: bool, lost: bool) -> None:
        plan = self.plans[group]
        mine = self.memberships.setdefault(node, {})
        if wants:
            mine[group] = Membership(group, plan.label, plan.base)
        elif group in mine:
            mine[group] = msgspec.structs.replace(mine[group], out=plan.label, stop=plan.base + 1, lost=lost)

    # Plans

    def _plan_all(
        self, groups: Iterable[GroupId], finals: Mapping[GroupId, Final], moves: tuple[Move, ...]
    ) -> None:
        """Give the groups that were touched their plans for the next epochs."""
        there = [group for group in groups if group in self.graph.groups]
        roots = trees(self.graph, there)
        floor = self.next_label
        labels: dict[AtomId, int] = {}
        for group in sorted(there):
            if roots[group] not in labels:
                labels[roots[group]] = self._new_label()
        kin = self._kin(groups, moves)
        runs = Runs(self.graph, self.sites)
        load = dict.fromkeys(self.up, 0)
        for plan in self.plans.values():
            for post in plan.holders:
                load[post.node] = load.get(post.node, 0) + 1
        for group in sorted(groups):
            final = finals.get(group)
            if group in roots:
                begin = Begin(labels[roots[group]], floor, kin[group], self._atoms_of(group))
            else:
                begin = Begin(self._new_label(), floor, kin[group], (), ends=True)
            hops = () if begin.ends else hops_of(self.graph, group, self.sites, self.lives, runs)
            self._plan(group, begin, final, tuple(move for move in moves if move[1] == group), hops, load)

    def _kin(self, groups: Iterable[GroupId], moves: tuple[Move, ...]) -> dict[GroupId, tuple[GroupId, ...]]:
        """By group: those of the others that share a subscriber with it, or did so until now."""
        touched = sorted(groups)
        of_member: dict[NodeId, set[GroupId]] = {}
        for group in touched:
            if group in self.graph.groups:
                for node in members_of(self.graph, group):
                    of_member.setdefault(node, set()).add(group)
        for node, group, _, _ in moves:
            of_member.setdefault(node, set()).add(group)
        found: dict[GroupId, set[GroupId]] = {group: set() for group in touched}
        for those in of_member.values():
            for group in those:
                found[group] |= those
        return {group: tuple(sorted(those - {group})) for group, those in found.items()}

    def _plan(
        self,
        group: GroupId,
        begin: Begin,
        final: Final | None,
        moves: tuple[Move, ...],
        hops: tuple[Hop, ...],
        load: dict[NodeId, int],
    ) -> None:
        before = self.plans.get(group)
        base = 0 if final is None else final.next
        kept = [post.node for post in before.holders if post.node in self.up] if before else []
        last = hops[-1].post.node if hops else next(iter(kept), min(self.up))
        holders = holders_of(last, kept, self.up, self._copies, load)
        for node in holders:
            load[node] = load.get(node, 0) + 1
        self.version += 1
        self.plans[group] = GroupPlan(
            group,
            self.version,
            before.opened if before is not None and before.hops else self.version,
            self._bases(before, final, base),
            base,
            begin,
            hops,
            tuple(Post(node, self.lives[node]) for node in holders),
            self._tenures(group, before, final, moves, base),
            () if final is None else final.serials,
            () if final is None else final.parts,
            0 if final is None else final.low,
            () if before is None or final is None else _rare_begins(before, final, self._copies),
        )

    def _bases(self, before: GroupPlan | None, final: Final | None, base: int) -> tuple[tuple[int, int], ...]:
        """The bases of the plans that matter: those above what all subscribers have."""
        low = 0 if final is None else final.low
        earlier = () if before is None else before.bases
        old = sum(one[1] < low for one in earlier)  # of these, the last one matters
        return (*earlier[max(0, old - 1) :][-BASES_MAX:], (self.version, base))

    def _tenures(
        self,
        group: GroupId,
        before: GroupPlan | None,
        final: Final | None,
        moves: tuple[Move, ...],
        base: int,
    ) -> tuple[Tenure, ...]:
        """Who gets which part of the log."""
        gone = () if final is None else final.gone
        tenures = {one.node: one for one in (before.tenures if before else ()) if one.node not in gone}
        if before is None:
            tenures = {node: Tenure(node, 0) for node in members_of(self.graph, group)}
        for node, _, wants, lost in moves:
            if wants:
                tenures[node] = Tenure(node, base)
            elif lost:
                tenures.pop(node, None)
            elif node in tenures:
                tenures[node] = msgspec.structs.replace(tenures[node], stop=base + 1)
        return tuple(tenures[node] for node in sorted(tenures))

    def _atoms_of(self, group: GroupId) -> tuple[tuple[AtomId, tuple[GroupId, ...]], ...]:
        return tuple((atom, self.graph.groups_of(atom)) for atom in self.graph.own_atoms(group))

    def _new_label(self) -> int:
        self.next_label += 1
        return self.next_label - 1

    # Snapshots

    def digest(self) -> bytes:
        """A short sign of everything, to tell whether another registry is the same."""
        return blake2b(self.snapshot(), digest_size=16).digest()

    def snapshot(self) -> bytes:
        """Everything, as bytes."""
        return _encoder.encode(
            _Snapshot(
                self.change,
                self.version,
                self.next_label,
                save_graph(self.graph),
                tuple(self.sites.items()),
                tuple(self.plans.values()),
                tuple(self.lives.items()),
                tuple(sorted(self.up)),
                tuple(self.asked.items()),
                tuple((node, tuple(groups.values())) for node, groups in self.memberships.items()),
                self.planned,
            )
        )

    def restore(self, state: bytes) -> None:
        """Take over everything from a snapshot."""
        saved = _snapshots.decode(state)
        self.change, self.version, self.next_label = saved.change, saved.version, saved.next_label
        self.graph = load_graph(saved.graph)
        self.sites = dict(saved.sites)
        self.plans = {plan.group: plan for plan in saved.plans}
        self.lives, self.up = dict(saved.lives), set(saved.up)
        self.asked = dict(saved.asked)
        self.memberships = {node: {one.group: one for one in groups} for node, groups in saved.memberships}
        self.planned = saved.planned


def _rare_begins(before: GroupPlan, final: Final, copies: int) -> tuple[tuple[int, Begin], ...]:
    """The beginnings of epochs that too few nodes have in their logs, for the next holders to add."""
    rare: list[tuple[int, Begin]] = []
    for position, begin in (*before.begins, (before.base, before.begin)):
        having = {part.post.node for part in final.parts if part.start <= position < part.stop}
        if position >= final.low and len(having) < copies:
            rare.append((position, begin))
    return tuple(rare)
