"""Who may send which message to whom, in the protocols with shards.

A source is a role, and of a replica also whether it is of the target's own shard or of another one.
"""

from typing import TypeAlias

from ordercast.components.consensus.messages import MESSAGES as CONSENSUS
from ordercast.components.cross_shard import messages as cross
from ordercast.components.logged_service.messages import Redirect
from ordercast.components.network_ordered import messages as replicas
from ordercast.core import Message
from ordercast.protocols.hydra import messages as hydra
from ordercast.transactions.eris.messages import EpochRequest
from ordercast.transactions.granola import messages as granola
from ordercast.transactions.lock_store import commands as lock_store

OWN, OTHER, CLIENT, COORDINATOR = "own replica", "other replica", "client", "coordinator"
SERVICE, SEQUENCER = "configuration", "sequencer"
ANY_REPLICA = frozenset({OWN, OTHER})
EVERYBODY = frozenset({OWN, OTHER, CLIENT, COORDINATOR, SERVICE, SEQUENCER})
Ways: TypeAlias = dict[tuple[type[Message], str], frozenset[str]]
"""By message and role of the target: who may send it. What is not named may be sent by nobody."""


def among(role: str, source: str, kinds: tuple[type[Message], ...]) -> Ways:
    return {(kind, role): frozenset({source}) for kind in kinds}


def to(role: str, sources: frozenset[str], *kinds: type[Message]) -> Ways:
    return {(kind, role): sources for kind in kinds}


REPLICA = "replica"
IN_A_SHARD = (
    replicas.GapRequest, replicas.Entries, replicas.GapCommit, replicas.GapCommitReply,
    replicas.ViewChangeRequest, replicas.ViewChange, replicas.StartView, replicas.StartViewReply,
    replicas.SyncPrepare, replicas.SyncReply, replicas.SyncCommit, replicas.FetchEntries,
    replicas.BaseRequest, replicas.BaseChunk, replicas.Return, replicas.StepsRequest, replicas.StepsTold,
)  # fmt: skip
LOGS = among(REPLICA, OWN, CONSENSUS)
GRANOLA: Ways = {
    **LOGS,
    **to(REPLICA, frozenset({CLIENT, OWN}), granola.Request),
    **to(REPLICA, ANY_REPLICA, granola.Vote),  # a replica that does not lead hands votes on
    **to(REPLICA, frozenset({OTHER}), granola.Ask, Redirect),
    **to(REPLICA, frozenset({CLIENT}), granola.Enquiry),
    **to(CLIENT, ANY_REPLICA, granola.Told, granola.Reading, Redirect),
}
LOCK_STORE: Ways = {
    **LOGS,
    **to(REPLICA, frozenset({CLIENT, OTHER}), lock_store.Order),
    **among(REPLICA, OWN, (lock_store.Relay,)),
    **to(REPLICA, frozenset({OTHER}), lock_store.Told, Redirect),
    **to(CLIENT, ANY_REPLICA, lock_store.Told, Redirect),
}
NETWORK: Ways = {
    **among(SERVICE, SERVICE, CONSENSUS),
    **among(COORDINATOR, COORDINATOR, CONSENSUS),
    **among(REPLICA, OWN, IN_A_SHARD),
    **among(REPLICA, SEQUENCER, (hydra.Groupcast, hydra.Flush)),
    **among(REPLICA, COORDINATOR, (cross.Question, cross.FoundMessages, cross.Gone, cross.Floors)),
    **to(REPLICA, frozenset({CLIENT}), replicas.ReadRequest),
    **to(CLIENT, ANY_REPLICA, replicas.Reply, replicas.ReadReply, cross.LateAnswer),
    **to(CLIENT, frozenset({SERVICE}), hydra.Announce, hydra.Steps),
    **to(COORDINATOR, frozenset({SERVICE}), hydra.Announce, hydra.Steps),
    **to(
        COORDINATOR, ANY_REPLICA,
        cross.FindMessages, cross.Shown, cross.Promised, cross.Certain, cross.Late,
    ),
    **to(SEQUENCER, frozenset({SERVICE}), hydra.Announce, hydra.Welcome),
    **to(SEQUENCER, ANY_REPLICA, hydra.Solicit),
    **to(SEQUENCER, frozenset({CLIENT, COORDINATOR, SEQUENCER}), hydra.Request),  # it knows no senders
    **to(SERVICE, frozenset({SEQUENCER, COORDINATOR}), hydra.Join),  # it knows no coordinators
    **to(SERVICE, ANY_REPLICA, hydra.Suspect),
    **to(SERVICE, EVERYBODY, hydra.Fetch),  # whoever asks is told
}  # fmt: skip
HYDRA_TXN: Ways = {
    **NETWORK,
    **to(REPLICA, frozenset({SERVICE}), hydra.Announce, hydra.Steps, hydra.Revived),
    **to(SERVICE, ANY_REPLICA, hydra.Report, hydra.Rebirth),
}
ERIS: Ways = {
    **NETWORK,
    **to(REPLICA, frozenset({SERVICE, COORDINATOR}), hydra.Announce),
    **to(REPLICA, frozenset({COORDINATOR}), hydra.Steps, hydra.Revived),
    **to(COORDINATOR, ANY_REPLICA, EpochRequest, hydra.Report, hydra.Rebirth, hydra.Fetch),
}
WAYS = {"granola": GRANOLA, "lock_store": LOCK_STORE, "hydra_txn": HYDRA_TXN, "eris": ERIS}
