"""What a member of a group waits for, and for whom."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ordercast.components.membership.ballot import ballot_owner
from ordercast.components.membership.standing import ADMITTED, CHANGING, JOINING, MEMBER
from ordercast.core import Explanation, Wait

if TYPE_CHECKING:
    from ordercast.components.membership.view_synchrony import ViewSynchrony


def explain(process: ViewSynchrony) -> Explanation:
    """The state of a member, and everything in it that waits, oldest first."""
    record = process.journal.record
    state: dict[str, str | int] = {
        "standing": process.standing.value,
        "view": record.number,
        "members": ", ".join(map(str, record.members)),
        "incarnation": process.journal.incarnation,
        "waiting for the next view": len(process.exchange.queue),
    }
    if process.suspects:
        state["suspects"] = ", ".join(map(str, process.suspects))
    waits = [*_change_waits(process), *_join_waits(process), *_message_waits(process)]
    return Explanation(state, tuple(sorted(waits, key=lambda wait: wait.since)), _behind(process))


def _behind(process: ViewSynchrony) -> str:
    if process.standing is JOINING:
        return "a view that takes it in"
    return "the state of the group" if process.standing is ADMITTED else ""


def _change_waits(process: ViewSynchrony) -> list[Wait]:
    journal = process.journal
    if process.coordinator.change is not None:
        return process.coordinator.change.waits()
    if process.standing is not CHANGING:
        return []
    leader = ballot_owner(journal.promised)
    blocker = f"node {leader}, which leads the change to it"
    return [Wait(f"view {journal.record.number + 1}", blocker, process.since, on=(leader,))]


def _join_waits(process: ViewSynchrony) -> list[Wait]:
    if process.transfer is not None:
        return process.transfer.waits()
    if process.standing is not JOINING:
        return []
    voters = tuple(node for node in process.journal.record.voters if node != process.env.me)
    nodes = ", ".join(map(str, voters))
    return [Wait("a seat", f"a view that takes it in, from nodes {nodes}", process.since, on=voters)]


def _message_waits(process: ViewSynchrony) -> list[Wait]:
    """What is missing, and who keeps the window full."""
    traffic = process.exchange.traffic
    if traffic is None:
        return []
    waits = [
        Wait(f"messages of node {sender}", f"message {first} of that node", traffic.since, on=(sender,))
        for sender, first, _ in traffic.gaps()
    ]
    if traffic.full and process.standing is MEMBER:
        slow = traffic.laggards()
        blocker = f"acknowledgements from nodes {', '.join(map(str, slow))}"
        waits.append(Wait("new messages", blocker, process.env.now, on=slow))
    return waits
