"""What a replica says about itself: its standing, and what waits here, for what."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ordercast.core import Explanation, NodeId, Wait
from ordercast.replication.llft.standing import Standing

if TYPE_CHECKING:
    from ordercast.replication.llft.replica import Replica


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
        "settled up to place": performer.settled,
        "messages kept": sum(
            len(connection.incoming.kept) + len(connection.outgoing.sent)
            for connection in replica.messaging.connections.values()
        ),
    }
    if replica.standing is Standing.OUTSIDE:
        state["why outside"] = replica.why_outside
    waits = [*_waits(replica)]
    behind = ""
    if replica.standing not in (Standing.PRIMARY, Standing.BACKUP):
        behind = waits[0].blocker if waits else "the end of a change of the primary"
    return Explanation(state, tuple(waits), behind)


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
    return waits


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
    if replica.performer.settled < replica.performer.place:
        place = f"places {replica.performer.settled + 1} to {replica.performer.place}"
        waits.append(Wait(place, "the backups to have them too", now, on=behind))
    return waits
