"""All or nothing: what one shard of a transaction delivers, all its shards deliver, and they end it alike."""

import numpy as np

from ordercast.core import GroupId, Groups, MessageId, format_ns, message_name
from ordercast.judge.columns.case import Case
from ordercast.judge.columns.columns import Flags
from ordercast.judge.columns.findings import Findings
from ordercast.judge.columns.lock_spans import LockRow, locks_of
from ordercast.judge.finding import listed


def all_or_nothing(case: Case, findings: Findings) -> None:
    """Compare the shards of each transaction."""
    _judge_deliveries(case, findings)
    _judge_ends(case, findings)


def _judge_deliveries(case: Case, findings: Findings) -> None:
    account = case.account
    count = len(account.submit_row)
    marks = {group: _delivered(case, group, count) for group in case.description.groups}
    for code, groups in enumerate(account.destinations):
        if len(groups) < 2:
            continue
        mine = account.destination[:count] == code
        several = np.stack([marks[group] for group in groups])
        broken = np.flatnonzero(mine & several.any(0) & ~several.all(0))
        for place in findings.wanted(broken.tolist()):
            has = [group for group in groups if marks[group][place]]
            lacks = [group for group in groups if not marks[group][place]]
            _tell_missing(case, findings, place, has[0], lacks)


def _delivered(case: Case, group: GroupId, count: int) -> Flags:
    """Which submitted messages some receiver of a group delivered in order."""
    account = case.account
    mine = np.isin(account.node, case.description.groups[group]) & (account.place < count)
    found = np.zeros(count, bool)
    found[account.place[mine if account.ordered is None else mine & account.ordered]] = True
    return found


def _tell_missing(case: Case, findings: Findings, place: int, group: GroupId, lacks: list[GroupId]) -> None:
    account = case.account
    mine = (account.place == place) & np.isin(account.node, case.description.groups[group])
    row = int(account.row[mine].min())
    node, time_ns, message = int(case.trace.node[row]), int(case.trace.time[row]), account.message(place)
    text = f"node {node} of shard {group} delivered {message_name(message)} at {format_ns(time_ns)}"
    findings.add((node,), (message,), (time_ns,), f"{text}; nobody of shards {listed(lacks)} did")


def _judge_ends(case: Case, findings: Findings) -> None:
    account = case.account
    last: dict[MessageId, dict[GroupId, LockRow]] = {}
    for (group, message), rows in locks_of(case.trace).items():
        ended = [one for one in rows if one.ends]
        if ended:
            top = max(one.place for one in ended)
            last.setdefault(message, {})[group] = next(one for one in ended if one.place == top)
    groups: dict[MessageId, Groups] = {}
    if last:
        wanted = np.isin(account.messages[: len(account.submit_row)], list(last))
        for place in np.flatnonzero(wanted).tolist():
            groups[account.message(place)] = account.destinations[int(account.destination[place])]
    for message, ends in last.items():
        _compare(case, findings, message, groups.get(message, ()), ends)


def _compare(
    case: Case, findings: Findings, message: MessageId, groups: Groups, ends: dict[GroupId, LockRow]
) -> None:
    done = [group for group in groups if group in ends and ends[group].committed]
    others = [group for group in groups if group not in done]
    if done and others and len(groups) > 1:
        one = ends[done[0]]
        time_ns = int(case.trace.time[one.row])
        text = f"{message_name(message)} was committed in shard {done[0]} at {format_ns(time_ns)}, and not in"
        findings.add((one.node,), (message,), (time_ns,), f"{text} shards {listed(others)}")
