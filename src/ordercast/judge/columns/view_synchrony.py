"""View synchrony (the hybrid paper's vs-multicast, section 5, and the usual properties of views).

Nodes that go from one view to the next together deliver the same messages in between. A view has the same
members at all nodes. The numbers of views grow at each node. A node installs only views that it is in, and
one view that leaves it out; after that view it delivers no message of the group. All nodes deliver a message
in the same view. The state that a view tells is the same at all nodes. If only a majority may go on, every
view has a majority of the receivers as members. A receiver that came later, was removed,
or ever asked to join or to leave, counts as a member of every view: it is not known when it counts.
"""

import numpy as np

from ordercast.core import Crashes, GroupId, NodeId, Partition, format_ns, message_name
from ordercast.judge.columns.account import Account
from ordercast.judge.columns.case import Case
from ordercast.judge.columns.columns import Ints
from ordercast.judge.columns.findings import Findings
from ordercast.judge.columns.notices import InstalledView
from ordercast.judge.columns.stays import Stay, Stays
from ordercast.judge.finding import listed, messages_named
from ordercast.trace import REQUESTS, Kind


def view_synchrony(case: Case, findings: Findings) -> None:
    """Judge the views that nodes installed, and what they delivered in them."""
    account, views = case.account, case.admitted.views
    stays = Stays(case.trace, views, until_left=True)  # a node that begins anew leaves without a view
    _judge_views(views, stays, findings)
    _judge_states(views, findings)
    _judge_majorities(case, views, findings)
    rows = {node: np.flatnonzero(account.node == node) for node in {view.node for view in views}}
    delivered = {stay: _delivered(account, stay, rows[stay.node]) for stay in stays.all}
    _judge_exclusions(account, stays, delivered, findings)
    inside = {stay: where for stay, where in delivered.items() if not stay.excluded}
    _judge_moves(account, inside, findings)
    for group in account.trace.description.groups:
        mine = {stay: where for stay, where in inside.items() if stay.group == group}
        _judge_places(account, group, mine, findings)


def _judge_views(views: list[InstalledView], stays: Stays, findings: Findings) -> None:
    """Judge each view alone, and compared with the node's last view."""
    known: dict[tuple[GroupId, int], tuple[NodeId, tuple[NodeId, ...]]] = {}
    last = {(stay.node, stay.group, stay.next.row): stay for stay in stays.all if stay.next is not None}
    for view in views:
        members = tuple(sorted(view.members))
        for group in view.groups:
            what = f"node {view.node} installed view {view.config} of group {group}"
            first, others = known.setdefault((group, view.config), (view.node, members))
            before = last.get((view.node, group, view.row))
            if others != members:
                told = f"{what} with members {listed(members)}, node {first} with {listed(others)}"
                _tell(findings, view, (view.node, first), told)
            if view.node not in members and (before is None or before.excluded):
                _tell(findings, view, (view.node,), f"{what}, which has only the members {listed(members)}")
            if before is not None and before.view.config >= view.config:
                _tell(findings, view, (view.node,), f"{what} while it was in view {before.view.config}")


def _judge_states(views: list[InstalledView], findings: Findings) -> None:
    """A group is in one state when a view begins."""
    known: dict[tuple[GroupId, int], InstalledView] = {}
    for view in views:
        for group in view.groups if view.state is not None else ():
            first = known.setdefault((group, view.config), view)
            if first.state != view.state:
                told = f"node {view.node} installed view {view.config} of group {group} in state {view.state}"
                nodes = (view.node, first.node)
                _tell(findings, view, nodes, f"{told}, node {first.node} in state {first.state}")


def _judge_majorities(case: Case, views: list[InstalledView], findings: Findings) -> None:
    """A minority does not go on."""
    promised, groups = case.description.guarantees, case.description.groups
    if promised.partition is not Partition.MAJORITY_CONTINUES:
        return
    unsettled = _unsettled(case, views)
    rows: dict[tuple[GroupId, int], InstalledView] = {}
    for view in views:
        for group in view.groups:
            rows.setdefault((group, view.config), view)
    parts = [tuple(groups)] if promised.crashes is Crashes.MINORITY_OF_ALL else [(group,) for group in groups]
    for config in sorted({view.config for view in views}):
        for part in parts:
            if all((group, config) in rows for group in part):
                first = [rows[group, config] for group in part]
                wanted = {node for group in part for node in groups[group]} | unsettled
                _judge_majority(first, wanted, unsettled, findings)


def _unsettled(case: Case, views: list[InstalledView]) -> set[NodeId]:
    """The nodes that asked to join or to leave, were removed, or came later: those crash before any view."""
    trace = case.trace
    begun: dict[NodeId, int] = {}
    for view in views:
        begun.setdefault(view.node, view.row)
    crashes = trace.rows(Kind.CRASH)
    pairs = zip(trace.node[crashes].tolist(), crashes.tolist(), strict=True)
    receivers = {node for nodes in case.description.groups.values() for node in nodes}
    came = {node for node, row in pairs if node in receivers and row < begun.get(node, len(trace.kind))}
    return came | {*case.description.removed} | set(trace.node[trace.rows(*REQUESTS)].tolist())


def _judge_majority(
    views: list[InstalledView], receivers: set[NodeId], unsettled: set[NodeId], findings: Findings
) -> None:
    members = sorted(receivers & unsettled.union(*(view.members for view in views)))
    if len(members) <= len(receivers) // 2:
        what = f"view {views[0].config} has {len(members)} of {len(receivers)} receivers: {listed(members)}"
        _tell(findings, views[0], tuple(members), f"{what}; a minority went on")


def _delivered(account: Account, stay: Stay, mine: Ints) -> Ints:
    """The deliveries of a stay that are addressed to its group."""
    rows = account.row[mine]
    first, last = np.searchsorted(rows, (stay.view.row, stay.until))
    there = mine[first:last]
    wanted = account.going_to(stay.group)
    return np.asarray(there[wanted[account.to[there]]])


def _judge_exclusions(
    account: Account, stays: Stays, delivered: dict[Stay, Ints], findings: Findings
) -> None:
    """A node that is left out delivers nothing, except messages that also go to another group of it."""
    members = account.trace.members
    for stay, where in delivered.items():
        for delivery in where.tolist() if stay.excluded else ():
            row = int(account.row[delivery])
            destination = account.destinations[account.to[delivery]]
            own = [g for g in destination if members.inside(stay.node, g, np.array([row]))[0]]
            there = [stays.stay_at(stay.node, group, row) for group in own]
            if any(other is None or not other.excluded for other in there):
                continue
            message = account.message(int(account.place[delivery]))
            _tell_delivery(
                account,
                findings,
                delivery,
                (stay.node,),
                f"node {stay.node} delivered {message_name(message)} of group {stay.group} after view"
                f" {stay.view.config}, which leaves it out",
            )


def _judge_moves(account: Account, delivered: dict[Stay, Ints], findings: Findings) -> None:
    """Nodes that went from one view to the next together delivered the same messages in between."""
    first: dict[tuple[GroupId, int, int], tuple[Stay, Ints]] = {}
    for stay, where in sorted(delivered.items(), key=lambda item: item[0].until):
        following = stay.next
        if following is None or not stay.whole or stay.node not in following.members:
            continue
        if following.config <= stay.view.config:
            continue
        move = (stay.group, stay.view.config, following.config)
        places = np.unique(account.place[where])
        other, theirs = first.setdefault(move, (stay, places))
        if np.array_equal(places, theirs):
            continue
        lacks, extra = np.setdiff1d(theirs, places), np.setdiff1d(places, theirs)
        messages = [account.message(place) for place in (*lacks.tolist(), *extra.tolist())]
        _tell(
            findings,
            following,
            (stay.node, other.node),
            f"nodes {stay.node} and {other.node} went from view {move[1]} of group {move[0]} to {move[2]},"
            f" but only one of them delivered {messages_named(messages)} in between",
            messages,
        )


def _judge_places(account: Account, group: GroupId, delivered: dict[Stay, Ints], findings: Findings) -> None:
    """Each message of a group is delivered in one view."""
    null = np.iinfo(np.int64).min
    config = np.full(len(account.messages), null, np.int64)
    witness = np.full(len(account.messages), -1, np.int64)
    for stay, where in delivered.items():
        places = account.place[where]
        fresh = config[places] == null
        config[places[fresh]] = stay.view.config
        witness[places[fresh]] = stay.node
        for delivery in where[config[places] != stay.view.config].tolist():
            place = int(account.place[delivery])
            message = message_name(account.message(place))
            _tell_delivery(
                account,
                findings,
                delivery,
                (stay.node, int(witness[place])),
                f"node {stay.node} delivered {message} in view {stay.view.config} of group {group}, node"
                f" {witness[place]} in view {config[place]}",
            )


def _tell(
    findings: Findings,
    view: InstalledView,
    nodes: tuple[NodeId, ...],
    what: str,
    messages: list[int] | None = None,
) -> None:
    findings.add(nodes, messages or (), (view.time_ns,), f"{what} (at {format_ns(view.time_ns)})", view.row)


def _tell_delivery(
    account: Account, findings: Findings, delivery: int, nodes: tuple[NodeId, ...], what: str
) -> None:
    time_ns = account.time(delivery)
    message = account.message(int(account.place[delivery]))
    row = int(account.row[delivery])
    findings.add(nodes, (message,), (time_ns,), f"{what} (at {format_ns(time_ns)})", row)
