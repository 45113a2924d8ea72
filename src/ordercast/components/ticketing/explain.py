"""A member in words: its role, what it believes about the others, and what each message waits for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ordercast.components.ticketing.messages import DataMessage, Key, Ticket
from ordercast.components.ticketing.modes import Mode
from ordercast.core import Explanation, GroupId, NodeId, RoleChange, Stamp, Wait, format_ns
from ordercast.core.ids import Groups

if TYPE_CHECKING:
    from ordercast.components.ticketing.member import TicketMember


def explain_member(member: TicketMember) -> Explanation:
    """What the member is, believes and waits for."""
    outside = member.mode is Mode.OUTSIDE and not member.views.is_out
    behind = "a view that it is in" if outside else ""
    return Explanation(_state(member), tuple(_waits(member)), behind)


def role_change(member: TicketMember, group: GroupId) -> RoleChange:
    """The role of the member, and what it believes about itself and the closest other active member."""
    assert member.sequencer is not None
    configuration, me = member.ordering.configuration, member.env.me
    others = [node for node in configuration.actives if node != me]
    believed = [f"own: {own}"] if (own := member.own_rate()) else []
    if others and (told := beliefs(member, closest := member.closest(others))):
        believed.append(f"closest active member {closest}: {told}")
    role = "active" if me in configuration.actives else "passive"
    return RoleChange(group, role, member.sequencer.node, configuration.view, "; ".join(believed))


def _state(member: TicketMember) -> dict[str, str | int]:
    configuration, me = member.ordering.configuration, member.env.me
    state: dict[str, str | int] = {"mode": member.mode.value, "active": _listed(configuration.actives)}
    if member.sequencer is not None and member.sequencer.node != me:
        state["sequencer"] = member.sequencer.node
    state["ticket clock"] = member.clock.read(member.env.now)
    state["waiting"] = len(member.ordering.waiting)
    for node in configuration.members:
        if believed := beliefs(member, node):
            state[f"member {node}"] = believed
    if member.refused:
        state["envelopes refused"] = member.refused
    return state


def beliefs(member: TicketMember, node: NodeId) -> str:
    """The rate of a member and the delay to it."""
    interval, delay = member.estimates.interval(node), member.estimates.delay(node)
    parts = []
    if interval is not None:
        parts.append(f"a message every {format_ns(interval)}")
    if delay is not None:
        parts.append(f"{format_ns(delay)} away")
    return ", ".join(parts)


def _waits(member: TicketMember) -> Iterator[Wait]:
    ordering = member.ordering
    tickets: dict[Key, Ticket] = {ticket.key: ticket for ticket in sorted(ordering.tickets, reverse=True)}
    first = min(ordering.tickets, default=None)
    for key, entry in ordering.waiting.items():
        ticket = tickets.get(key)
        on: tuple[NodeId, ...] = (entry.sequencer.node,)
        blocker = f"a ticket from member {entry.sequencer.node}"
        if ticket is not None:
            blocker, on = _blocker(member, ticket, first)
        groups, payload = _content(entry.message)
        stamp = None if ticket is None else Stamp(ticket.number, ticket.issuer)
        yield Wait(
            f"message {key.serial} of member {key.sender}",
            blocker,
            entry.since,
            payload,
            None,
            groups,
            stamp,
            on,
        )
    if first is not None and first.key not in ordering.waiting:
        subject = f"ticket {first.number} of member {first.issuer}"
        sender = first.key.sender
        yield Wait(subject, f"message {first.key.serial} of member {sender}", member.env.now, on=(sender,))
    if len(member.majority) and member.setting.options.uniform:
        behind = member.majority.behind()
        subject = f"{len(member.majority)} ordered messages"
        yield Wait(
            subject,
            f"word from a majority that has them, such as {_listed(tuple(behind))}",
            member.env.now,
            on=tuple(behind),
        )


def _blocker(member: TicketMember, ticket: Ticket, first: Ticket | None) -> tuple[str, tuple[NodeId, ...]]:
    me, ordering = member.env.me, member.ordering
    laggards = tuple(ordering.laggards(ticket, me, member.clock.read(member.env.now)))
    if laggards:
        clock = max(ordering.clocks.get(laggards[0], 0), 0)
        return (
            f"the ticket clock of member {laggards[0]}, which is at {clock} and must reach {ticket.number}",
            laggards,
        )
    if first is not None and first != ticket:
        return f"ticket {first.number} of member {first.issuer}, which comes before", ()
    return "its turn", ()


def _content(message: object) -> tuple[Groups | None, bytes | None]:
    return (message.groups, message.payload) if isinstance(message, DataMessage) else (None, None)


def _listed(nodes: tuple[NodeId, ...]) -> str:
    return ", ".join(map(str, nodes)) or "nobody"
