"""A replica of Multi-Paxos (Hydra section 7.2): the leader puts calls into the log, others forward them."""

from ordercast.components.execution import Call
from ordercast.components.logged_service import LoggedService
from ordercast.components.logged_service.logged_replica import Place
from ordercast.components.logged_service.proposer import Proposer
from ordercast.core import Env, Explanation
from ordercast.replication.multi_paxos.options import MultiPaxosOptions


class Server(LoggedService):
    """One replica of one group's service."""

    def __init__(self, env: Env, place: Place, options: MultiPaxosOptions) -> None:
        super().__init__(env, place, options)
        self._proposer = Proposer(self.log, options)

    def lead(self, call: Call, packed: bytes) -> None:
        """Put a call into the log."""
        self._proposer.add(call.first, packed)

    def assist(self, call: Call, packed: bytes) -> None:
        """Hand a call to the leader."""
        self.forward(call, packed)

    def on_executed(self, call: Call) -> None:
        """The call may be proposed again, if it comes again."""
        self._proposer.done(call.first)

    def conclude(self) -> None:
        """Put calls into the log that wait for a slot."""
        self._proposer.push()
        super().conclude()

    def explain_own(self) -> Explanation:
        """What waits here."""
        told = super().explain_own()
        return Explanation({**told.state, "calls queued": len(self._proposer)}, told.waits, told.behind)
