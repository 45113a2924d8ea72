"""A ToR switch that aggregates flushes (section 4.6.2).

It keeps the newest flush of every sequencer. It answers a receiver with all of them in one message as soon as
the lowest of their clocks is above the clock that the receiver asked for. So a receiver handles one message
for the flushes of all sequencers.
"""

from collections.abc import Mapping

from ordercast.core import Env, Explanation, Message, NodeId, Wait
from ordercast.protocols.hydra.limits import KnowsSequencers, Limits
from ordercast.protocols.hydra.messages import Announce, Fetch, Flush, Flushes, Solicit
from ordercast.protocols.hydra.options import HydraOptions


class Aggregator(KnowsSequencers):
    """Collects flushes, and answers with all of them in one message."""

    def __init__(
        self,
        env: Env,
        initial: Mapping[int, NodeId],
        service: tuple[NodeId, ...],
        groups: int,
        options: HydraOptions,
    ) -> None:
        super().__init__(env)
        self._options = options
        self._service = service
        self._limits = Limits(service, groups)
        self._steps = -1
        self._initial = tuple(initial)
        self._flushes: dict[int, Flush] = {}
        self._asked: dict[NodeId, tuple[int, int]] = {}
        """By receiver: the clock that it asked for, and when."""

    def on_start(self, saved: Mapping[str, bytes]) -> None:
        """Begin with the sequencers of the first configuration, and ask for news."""
        self._watch(self._initial)
        self.env.multicast(self._service, Fetch(0))

    def on_message(self, source: NodeId, message: Message) -> None:
        """Handle a flush, a solicitation, or a new configuration."""
        if isinstance(message, Flush):
            self._limits.check_flush(message, self.env.now)
            known = self._flushes.get(message.sequencer)
            if known is not None and message.clock > known.clock:
                self._flushes[message.sequencer] = message
                self._answer()
        elif isinstance(message, Solicit):
            self._asked[source] = (message.clock, self.env.now)
            self._answer()
        elif isinstance(message, Announce):
            self._limits.check_announce(source, message)
            self._on_announce(message)

    def explain(self) -> Explanation:
        """Which receivers wait for which sequencer's clock."""
        slowest = min(self._flushes.values(), key=lambda flush: flush.clock, default=None)
        waits = tuple(
            Wait(f"flush for node {node}", f"sequencer {slowest.sequencer} to pass clock {clock}", since)
            for node, (clock, since) in sorted(self._asked.items())
            if slowest is not None
        )
        return Explanation({"role": "aggregator", "sequencers": len(self._flushes)}, waits)

    def _on_announce(self, message: Announce) -> None:
        if message.steps > self._steps:
            self._steps = message.steps
            self._watch(tuple(number for number, _ in message.active))
            self._answer()

    def _watch(self, sequencers: tuple[int, ...]) -> None:
        self._flushes = {
            number: self._flushes.get(number, Flush(number, 0, ())) for number in sorted(sequencers)
        }

    def _answer(self) -> None:
        if not self._asked:
            return
        lowest = min((flush.clock for flush in self._flushes.values()), default=0)
        ready = tuple(node for node, (clock, _) in self._asked.items() if clock < lowest)
        if ready:
            self.env.multicast(ready, Flushes(tuple(self._flushes.values())))
            for node in ready:
                del self._asked[node]
