"""Heartbeats: what a node tells the others at regular times, and what it learns from them."""

from collections.abc import Callable

from ordercast.components.membership.coordinator import Coordinator
from ordercast.components.membership.detector import Detector, has_bit, pack_bits
from ordercast.components.membership.exchange import Exchange
from ordercast.components.membership.journal import VoteJournal
from ordercast.components.membership.limits import check_claim, check_round
from ordercast.components.membership.messages import Beat, Install
from ordercast.core import Env, NodeId


class Pulse:
    """Sends and takes heartbeats."""

    __slots__ = ("_asks", "_coordinator", "_detector", "_env", "_exchange", "_journal")

    def __init__(
        self,
        env: Env,
        journal: VoteJournal,
        detector: Detector,
        exchange: Exchange,
        coordinator: Coordinator,
        asks: Callable[[], bool],
    ) -> None:
        self._env = env
        self._journal = journal
        self._detector = detector
        self._exchange = exchange
        self._coordinator = coordinator
        self._asks = asks

    def send(self) -> None:
        """Send a heartbeat to all members and voters, if this node is one."""
        peers, me = self._journal.peers, self._env.me
        if me in peers:
            self._env.multicast(tuple(node for node in peers if node != me), self._beat())

    def _beat(self) -> Beat:
        journal, traffic = self._journal, self._exchange.traffic
        hears = pack_bits([self._detector.hears(node) for node in journal.peers])
        known = (journal.record.number, journal.incarnation, journal.promised)
        counts = traffic.counts() if traffic else ()
        return Beat(*known, self._asks(), journal.abstains, hears, counts)

    def on_beat(self, source: NodeId, message: Beat) -> None:
        """A heartbeat came. One of an earlier view is answered with the newest."""
        record, peers = self._journal.record, self._journal.peers
        traffic, me = self._exchange.traffic, self._env.me
        check_claim(source, message, record, self._env.now)
        self.teach(source, message.view)
        if message.view > record.number and not (me in peers and source in peers):
            self._env.send(source, self._beat())  # it would get no other heartbeat: ask for that view
        if message.view != record.number or source not in peers or me not in peers:
            return
        check_round(source, message.ballot, self._coordinator.seen)
        if message.received and traffic is not None:
            traffic.check_counts(source, message.received)
        self._coordinator.seen = max(self._coordinator.seen, message.ballot)
        self._detector.hear(source, message.incarnation)
        hears_me = has_bit(message.hears, peers[me])
        self._detector.on_beat(source, message, hears_me=hears_me)
        if message.received:
            self._exchange.on_counts(source, message.received)

    def teach(self, source: NodeId, known: int) -> None:
        """Tell a node that is behind of the newest view.

        Also one that has left does so: the other may know nobody else who is up.
        """
        if known < self._journal.record.number:
            self._env.send(source, Install(self._journal.record))
