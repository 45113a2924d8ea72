"""A host's connection to the others: datagrams go out and come in, sealed, at the pace of the peers.

The `Outbox` packs frames into datagrams, and they leave when the host calls `transmit`. Datagrams to a peer
arrive in the order in which they were sent, unless the network loses or reorders them. Frames about the link
itself (acknowledgements, challenges, requests for fragments) leave at once.
"""

import secrets
import time
from collections.abc import Callable, Iterable
from typing import Protocol

from ordercast.core import MILLISECOND, HostId, Nanos, NodeId, RemoteError
from ordercast.net.links.acquaintance import STORAGE_BYTES, Acquaintance, Strangers, admit
from ordercast.net.links.datagram import (
    ACK,
    ACK_PLEASE,
    CHALLENGE,
    DATA,
    FRAGMENT,
    HEADER_BYTES,
    MISSING,
    PROOF,
    Ack,
    Challenge,
    DatagramHeader,
    Frame,
    Missing,
    Proof,
    Rejected,
    read_ack,
    read_challenge,
    read_fragment,
    read_frames,
    read_header,
    read_missing,
    read_proof,
    write_ack,
    write_challenge,
    write_missing,
    write_proof,
)
from ordercast.net.links.fragments import Fragments
from ordercast.net.links.link import PRESSURE_MAX
from ordercast.net.links.outbox import Outbox, Outgoing
from ordercast.net.links.peer import Peer
from ordercast.net.links.seal import Seal
from ordercast.net.links.session import Candidate
from ordercast.net.metrics.metrics import Metrics
from ordercast.net.transports.address import Address
from ordercast.net.transports.transport import Datagram, Origin, Transport

TICK_NS: Nanos = 20 * MILLISECOND
"""How often links are checked."""
REPAIR_NS: Nanos = 5 * MILLISECOND
"""How often the host looks for lost fragments while messages are unfinished."""
QUEUE_HIGH, QUEUE_LOW = 2 << 20, 1 << 20
"""Bytes in the queue of a link: above the first the host is under pressure, below the second no more."""
BULK_BYTES = 64 << 10
"""A peer that has sent this many bytes lately is a source, and may be asked to slow down."""


class Reader(Protocol):
    """The handler of frames that come in."""

    def __call__(
        self, host: HostId, source: NodeId, destinations: tuple[NodeId, ...], body: Datagram
    ) -> None:
        """A frame of a host, from one of its nodes to nodes here and elsewhere."""


def new_session() -> int:
    """A number for a new life of a host."""
    return secrets.randbits(64)


class Wire:
    """Frames to and from all other hosts."""

    def __init__(
        self,
        host: HostId,
        peers: Iterable[HostId],
        transport: Transport,
        seal: Seal,
        metrics: Metrics,
        *,
        window: int,
        clock: Callable[[], Nanos] = time.monotonic_ns,
    ) -> None:
        self.host = host
        self.transport = transport
        self.seal = seal
        self.outbox = Outbox(transport.datagram_max - HEADER_BYTES - seal.overhead, clock)
        """Holds this host's messages to others until they are given to `transmit`."""
        self.metrics = metrics
        others = (peer for peer in peers if peer != host)
        self._window = window
        self.peers: dict[HostId, Peer] = {peer: Peer(peer, window, metrics) for peer in others}
        self.acquaintance: Acquaintance = Strangers(secrets.token_bytes(STORAGE_BYTES))
        """The storage of this host, and those of its peers."""
        self._clock = clock
        self._read: Reader | None = None
        self._counter = 0
        self._acks_due: list[Peer] = []
        self._congested = False
        self._strained = False
        """Whether an application here is slow to take its deliveries."""
        self._unfinished: Callable[[], None] = lambda: None
        self._repairing = False

    def introduce(self, acquaintance: Acquaintance) -> None:
        """Know other hosts by their storage, from the start."""
        self.acquaintance = acquaintance

    def add_peer(self, host: HostId, address: Address) -> None:
        """Speak with one more host from now on."""
        self.transport.add_host(host, address)
        self.peers[host] = Peer(host, self._window, self.metrics)

    def remove_peer(self, host: HostId) -> None:
        """Forget a host and its link: what comes from it counts as from a stranger."""
        peer = self.peers.pop(host)
        self._acks_due = [due for due in self._acks_due if due is not peer]
        self.transport.remove_host(host)

    async def start(self, read: Reader, drained: Callable[[], None], unfinished: Callable[[], None]) -> None:
        """Begin to read; `drained` is called after each burst, and `unfinished` when a message has begun to
        come in fragments: `repair` is to be called each `REPAIR_NS` from then on.
        """
        self._read, self._unfinished = read, unfinished
        await self.transport.start(self.on_datagram, drained)

    # Out

    def transmit(self, datagrams: Iterable[Outgoing]) -> None:
        """Seal datagrams and give them to the links."""
        peers, now = self.peers, self._clock()
        for hosts, plain in datagrams:
            counter, flags = self._counter + 1, 0
            for host in hosts:
                if peers[host].link.wants_ack(len(plain)):
                    flags = ACK_PLEASE
            ready = tuple([host for host in hosts if peers[host].link.admit(counter, plain, now)])
            if ready:
                self._counter = counter
                self._transmit(ready, self.seal.close(flags, counter, plain))
            if len(ready) < len(hosts):
                self._weigh()

    def _transmit(self, hosts: tuple[HostId, ...], datagram: bytes) -> None:
        self.metrics.packets_out += len(hosts)
        self.metrics.bytes_out += len(hosts) * len(datagram)
        if len(hosts) == 1:
            self.transport.send(hosts[0], datagram)
        else:
            self.transport.send_many(hosts, datagram)

    def flush(self) -> None:
        """End a turn: send the acknowledgements that are due, and let the transport send all it has."""
        if self._acks_due:
            for peer in self._acks_due:
                self._acknowledge(peer)
            self._acks_due.clear()
        self.transport.flush()

    def _acknowledge(self, peer: Peer) -> None:
        peer.ack_due = False
        session = peer.sessions.current
        if session is not None:
            self._say(peer.host, write_ack(self._ack_of(peer)), 0)

    def _say(self, host: HostId, frame: bytes, flags: int) -> None:
        """Seal and send at once: a frame about the link itself, or frames that the window now allows."""
        self._counter += 1
        self._transmit((host,), self.seal.close(flags, self._counter, frame))

    # Pressure

    def pressed(self) -> bool:
        """Whether senders should pause: a queue here is long, or a peer asks for it."""
        if self._congested:
            return True
        now = self._clock()
        return any(peer.link.pressure(now) for peer in self.peers.values())

    def _weigh(self) -> None:
        """Check whether the queues are long, or short again, and tell the peers if that has changed."""
        longest = max((peer.link.queued for peer in self.peers.values()), default=0)
        self._congested = longest > (QUEUE_LOW if self._congested else QUEUE_HIGH)
        self.metrics.link_queue_bytes = sum(peer.link.queued for peer in self.peers.values())
        self._tell(self._level())

    def _level(self) -> int:
        if self._congested or self._strained:
            return PRESSURE_MAX
        now = self._clock()
        return max(0, max((peer.link.pressure(now) for peer in self.peers.values()), default=0) - 1)

    def _tell(self, level: int, *, again: bool = False) -> None:
        """Ask the peers that send much to slow down; when the pressure is over, tell all that were asked.

        The level falls by one with each hop, so no request goes round for ever.
        """
        for peer in self.peers.values():
            wanted = level if peer.told or peer.weight >= BULK_BYTES else 0
            if wanted != peer.told or (again and wanted):
                peer.told = wanted
                self._acknowledge(peer)

    def strain(self, strained: bool) -> None:
        """Note whether an application is slow to take its deliveries."""
        self._strained = strained
        self._weigh()

    def tick(self) -> None:
        """Check links and sessions on which nothing moves, and repeat requests to slow down."""
        now, away = self._clock(), 0
        self.outbox.forget_old(now)
        for peer in self.peers.values():
            if peer.link.look_after(now) and peer.sessions.current is not None:
                self._say(peer.host, write_ack(self._ack_of(peer)), ACK_PLEASE)
            for session in peer.sessions.overdue(now):
                self._challenge(peer, session)
            away += peer.link.away
            if not peer.told:
                peer.weight -= peer.weight >> 2
        self.metrics.links_away = away
        self._weigh()
        self._tell(self._level(), again=True)
        self.transport.flush()

    def repair(self) -> bool:
        """Ask for fragments that seem to be lost; returns whether some message is still unfinished."""
        now = self._clock()
        for peer in self.peers.values():
            for missing in peer.fragments.missing(now):
                self._say(peer.host, write_missing(missing), 0)
        self._repairing = any(peer.fragments.unfinished for peer in self.peers.values())
        self.transport.flush()
        return self._repairing

    def _ack_of(self, peer: Peer) -> Ack:
        return Ack(peer.host, peer.sessions.current or 0, peer.sessions.highest, peer.told)

    # In

    def on_datagram(self, datagram: Datagram) -> Origin | None:
        """Open a datagram, and handle its frames; a bad one is counted and dropped."""
        metrics = self.metrics
        metrics.packets_in += 1
        metrics.bytes_in += len(datagram)
        try:
            header = read_header(datagram)
            peer = self.peers.get(header.host)
            if peer is None:
                raise Rejected("source", f"datagram comes from host {header.host}, which is not a peer")
            sessions = peer.sessions
            if sessions.knows(header.session, header.counter):  # cheaper than to open its seal
                raise Rejected("replay", "datagram is a copy, or was for an earlier life")
            plain = self.seal.open(header, datagram)
            if header.session != sessions.current:
                self._on_unproven(peer, header, plain)
                return peer.proven if header.session == sessions.current else peer.claimed
            elif header.counter <= sessions.floor or not sessions.seen.admit(header.counter):
                raise Rejected("replay", "datagram is a copy, or was for an earlier life")
            else:
                self._take(peer, header.flags, header.counter, plain)
                return peer.proven
        except Rejected as rejected:
            name = f"rejected_{rejected.reason}"
            setattr(metrics, name, getattr(metrics, name) + 1)
        except RemoteError:
            metrics.malformed += 1
        return None

    def _take(self, peer: Peer, flags: int, counter: int, plain: bytes) -> None:
        """Note a datagram of the current session, and read its frames."""
        if counter > peer.sessions.highest:
            peer.sessions.highest = counter
        if flags and not peer.ack_due:
            peer.ack_due = True
            self._acks_due.append(peer)
        for frame in read_frames(plain):
            self._on_frame(peer, frame)

    def _on_frame(self, peer: Peer, frame: Frame) -> None:
        kind, source, destinations, body = frame
        if kind == DATA:
            peer.weight += len(body)
            assert self._read is not None
            self._read(peer.host, source, destinations, body)
        elif kind == FRAGMENT:
            peer.weight += len(body)
            whole = peer.fragments.add(read_fragment(body), self._clock())
            if whole is not None:
                assert self._read is not None
                self._read(peer.host, source, destinations, whole)
            elif not self._repairing:
                self._repairing = True
                self._unfinished()
        elif kind == ACK:
            self._on_ack(peer, read_ack(body))
        elif kind == CHALLENGE:
            self._on_challenge(peer, peer.sessions.current, source, body)
        elif kind == MISSING:
            self._on_missing(peer, read_missing(body))
        elif kind != PROOF:  # one for a session that is proven already
            raise RemoteError(f"unknown frame kind {kind}")

    def _on_ack(self, peer: Peer, ack: Ack) -> None:
        if ack.host != self.host or ack.session != self.session:
            return
        if ack.counter > self._counter:
            raise RemoteError(f"peer acknowledges datagram {ack.counter}, which was never sent")
        link = peer.link
        pressed = link.pressure(self._clock())
        link.acknowledge(ack.counter, ack.pressure, self._clock())
        waited = bool(link.queue)
        # Sealed only now: with an older counter than what went by in the meantime, it would count as a copy,
        # and as acknowledged before it came.
        while (plain := link.next_ready(self._counter + 1)) is not None:
            flags = ACK_PLEASE if link.wants_ack(len(plain)) else 0
            self._say(peer.host, plain, flags)
        if waited or ack.pressure != pressed:
            self._weigh()

    def _on_missing(self, peer: Peer, missing: Missing) -> None:
        """Send fragments again to the host that asks, at the pace of its link."""
        # What waits for the window has not left yet: the peer misses it too early.
        waiting = {id(frames) for _, frames in peer.link.queue}
        for frame in self.outbox.asked(peer.host, missing):
            if id(frame) not in waiting:
                self.metrics.fragments_repeated += 1
                self.outbox.add((peer.host,), frame)

    # Sessions

    @property
    def session(self) -> int:
        """The number of this host's own life."""
        return self.seal.session

    def _on_unproven(self, peer: Peer, header: DatagramHeader, plain: bytes) -> None:
        """Handle a datagram of a session that may be a recording: only challenges and proofs count now."""
        sessions, now = peer.sessions, self._clock()
        candidate = sessions.candidate(header.session)
        data = False
        for kind, source, _, body in read_frames(plain):
            if kind == CHALLENGE:
                self._on_challenge(peer, header.session, source, body)
            elif kind == PROOF and self._lets_in(peer, header.session, read_proof(body)):
                self._on_proven(peer, candidate)
                sessions.seen.admit(header.counter)
                return
            elif kind != PROOF:
                data = True
        if not data:
            candidate.seen.admit(header.counter)  # once the session is proven, a copy of it is refused
        elif not sessions.hold(candidate, header.flags, header.counter, plain):
            self.metrics.rejected_session += 1
        if sessions.should_ask(candidate, now):
            self._challenge(peer, header.session)
            self.transport.flush()

    def _challenge(self, peer: Peer, session: int) -> None:
        challenge = Challenge(peer.sessions.nonce(session), self.acquaintance.claim)
        self._say(peer.host, write_challenge(peer.host, challenge), 0)

    def _lets_in(self, peer: Peer, session: int, proof: Proof) -> bool:
        """Whether a proof makes a session current: it answers, and both hosts know each other's storage."""
        if not peer.sessions.answers(session, proof):
            return False
        if not admit(self.acquaintance, peer.host, proof.claim, proof.verdict):
            self.metrics.rejected_storage += 1
            return False
        return peer.sessions.prove(session, proof) is not None

    def _on_proven(self, peer: Peer, candidate: Candidate) -> None:
        """Begin a new life of a peer; its waiting datagrams count if they were for this life of the host."""
        peer.sessions.proven_at = self._counter
        if peer.sessions.succeeded:
            peer.link.forget()  # what waits was for the life before
        peer.link.away = False
        peer.fragments = Fragments()
        for flags, counter, held in candidate.held:
            if counter > peer.sessions.floor:
                self._take(peer, flags, counter, held)
            else:
                self.metrics.rejected_replay += 1

    def _on_challenge(self, peer: Peer, challenger: int | None, challenged: HostId, body: memoryview) -> None:
        if challenged == self.host and challenger is not None:
            nonce, claim = read_challenge(body)
            floor = peer.sessions.answer(challenger, self._counter)
            verdict = self.acquaintance.judge(peer.host, claim)
            proof = Proof(nonce, floor, self.acquaintance.claim, verdict)
            self._say(peer.host, write_proof(peer.host, proof), 0)
            self.transport.flush()
