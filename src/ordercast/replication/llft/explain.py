"""What a replica says about itself: its standing, and what waits here, for what."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ordercast.core import Explanation, NodeId, Wait, message_name
from ordercast.core.bundle import pack_bundle
from ordercast.replication.llft.standing import Standing

if TYPE_CHECKING:
    from ordercast.replication.llft.replica import Replica


ASKS_SHOWN = 64
"""An explanation has so many calls that wait for other groups."""


def explain_replica(replica: Replica) -> Explanation:
    """The state of a replica in words, and what waits here."""
    performer = replica.performer
    members = ", ".join(f"node {one % replica.setting.nodes}" for one in replica.membership.members)
    state: dict[str, str | int] = {
        "role": replica.standing.value,
        "view": str(replica.view),
        "members": members,
        "precedence": replica.precedence,
        "performed up to place": performer.place,
        "settled up to place": performer.notices.settled,
        "messages kept": sum(
            len(connection.incoming.kept) + len(connection.outgoing.sent)
            for connection in replica.messaging.connections.values()
        ),
    }
    if replica.performer.seats.changed_at:
        state["seats"] = ", ".join(f"node {node}" for node in sorted(replica.performer.seats.since))
    if replica.standing is Standing.OUTSIDE:
        state["why outside"] = replica.why_outside
    waits = [*_waits(replica)]
    behind = ""
    if replica.standing not in (Standing.PRIMARY, Standing.BACKUP):
        behind = waits[0].blocker if waits else "the end of a change of the primary"
    return Explanation(state, (*_waits_for_groups(replica), *waits), behind)


def _waits(replica: Replica) -> list[Wait]:
    waits: list[Wait] = []
    log, place = replica.log, replica.performer.place
    primary = (replica.setting.primary_node(replica.promised),)
    match replica.standing:
        case Standing.PROPOSER:
            lacking = tuple(replica.succession.lacks())
            named = ", ".join(map(str, lacking)) or "a majority of the replicas"
            waits.append(
                Wait("the election", f"the consent of node {named}", replica.succession.since, on=lacking)
            )
        case Standing.RECOVERING:
            parties = replica.recovery.lacks()
            nodes = tuple(node for party in parties for node in replica.setting.parties[party])
            blocker = f"what {len(parties)} remote groups know of the old primary"
            waits.append(Wait("the new view", blocker, replica.recovery.since, on=nodes))
        case Standing.OUTSIDE:
            waits.append(Wait("membership", "a primary that admits it", replica.admission.since))
        case Standing.ADMITTED:
            waits.append(Wait("membership", "the state of the primary", replica.heard_at, on=primary))
    if place < log.end and replica.standing in (Standing.BACKUP, Standing.RECOVERING):
        waits.append(
            Wait(f"place {place + 1}", "the message that is ordered there", replica.heard_at, on=primary)
        )
    if replica.leads:
        waits += _waits_of_primary(replica)
    return [*waits, *_waits_for_seat(replica)]


def _waits_for_groups(replica: Replica) -> list[Wait]:
    """Calls with operations that have asked another group: which one, and what is lacking."""
    asks, setting = replica.performer.executor.asks, replica.setting
    waits: list[Wait] = []
    for ask in list(asks.waiting.values())[:ASKS_SHOWN] if asks is not None else ():
        call = asks.calls.get(ask.call) if asks is not None else None
        times = [] if call is None else call.times
        asked = setting.way_to(ask.group, replica.messaging.views.last.get(ask.group))[0]
        blocker, on = f"the answer of group {ask.group}", asked
        if not ask.via:
            blocker = f"the primary of group {replica.party} to ask group {ask.group}"
            on = setting.primary_node(replica.view)
        elif ask.message is not None:
            blocker = f"the answer of group {ask.group} to {message_name(ask.message)}"
        waits.append(
            Wait(
                f"call {message_name(ask.call)}",
                blocker,
                ask.time_ns or replica.env.now,
                payload=pack_bundle(ask.call, times, [b""] * len(times)) if times else None,
                groups=(replica.party,),
                on=(on,) if on != replica.env.me else (),
            )
        )
    return waits


def _waits_for_seat(replica: Replica) -> list[Wait]:
    """A request to join or to leave the group."""
    seating, seats = replica.seating, replica.performer.seats
    if not seats.told:
        return [Wait("joining", "a place in the order of the group", replica.admission.since)]
    if seating.leaving_since is None:
        return []
    blocker = "another replica in the group that has the state"
    if seats.left_at is not None and not replica.leads:
        blocker = f"the end of its seat, place {seats.left_at}, to be settled"
    return [Wait("leaving", blocker, seating.leaving_since)]


def _waits_of_primary(replica: Replica) -> list[Wait]:
    primary, now = replica.primary, replica.env.now
    behind: tuple[NodeId, ...] = tuple(
        precedence % replica.setting.nodes
        for precedence, peer in primary.peers.items()
        if peer.performed < replica.log.end
    )
    waits: list[Wait] = []
    if primary.stalled_since is not None:
        waits.append(
            Wait("the messages of clients", "backups that are behind", primary.stalled_since, on=behind)
        )
    settled, performed = replica.performer.notices.settled, replica.performer.place
    if settled < performed:
        place = f"places {settled + 1} to {performed}"
        waits.append(Wait(place, "the backups to have them too", now, on=behind))
    return waits
