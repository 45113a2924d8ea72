"""Sessions: which life of a peer speaks, and whether it speaks now.

The seal of a datagram proves that a holder of the key made it, and its counter proves that it is not a copy
of an earlier one. Neither can tell a new life of a peer from a recording of an old life. So the first
datagrams of an unknown session wait, and its host is challenged to seal a number that nobody can guess: only
a living host can do that. When the proof comes, the waiting datagrams count, and the session replaces the one
before. Challenge and proof may get lost. So while datagrams wait the challenge is repeated for a second, and
after that whenever more datagrams come; first often, then ever more rarely, because a recording that is
played again and again never answers, and each challenge wakes its host.

The number is made from a secret, the session, and how many sessions were proven before it. So it need not be
remembered, and recordings of many old lives cannot push the number of a living session out of memory. A proof
is worth nothing once a session has been proven, so it cannot be replayed.

A recording of a living session is also useless against a new life of the host that it was for. The proof says
up to which counter its sender believed that it spoke to an earlier life of the challenger. No datagram up to
that counter counts.
"""

import secrets
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import blake2b

from ordercast.core import MILLISECOND, Nanos, Seen
from ordercast.net.links.datagram import NONCE_BYTES, Proof

REPLAY_WINDOW = 4096
"""Datagrams that come later than this many others of their session count as copies."""
PENDING_MAX = 4
"""How many sessions of a peer may be challenged at a time; the oldest is dropped first."""
HELD_BYTES_MAX = 1 << 20
ASK_AGAIN_NS: Nanos = 20 * MILLISECOND
OFTEN = 5
"""So many challenges are repeated after the shortest pause; then each pause is twice the one before."""
PAUSE_NS_MAX: Nanos = 16 * ASK_AGAIN_NS
REMINDERS_MAX = 10
"""How often a challenge is repeated without new datagrams: within a second."""


@dataclass(slots=True)
class Candidate:
    """A session that has not proved yet that its host is alive."""

    ask_at: Nanos | None = None
    """When it may be challenged again."""
    asks: int = 0
    seen: Seen = field(default_factory=lambda: Seen(REPLAY_WINDOW))
    held: list[tuple[int, int, bytes]] = field(default_factory=list)
    """Flags, counter and frames of the waiting datagrams."""
    held_bytes: int = 0
    reminders: int = 0


class Sessions:
    """The sessions of one peer."""

    __slots__ = (
        "_candidates",
        "_challenger",
        "_own_floor",
        "_proven",
        "_secret",
        "current",
        "floor",
        "highest",
        "proven_at",
        "seen",
    )

    def __init__(self) -> None:
        self.current: int | None = None
        """The session that is proven."""
        self.seen = Seen(REPLAY_WINDOW)
        self.highest = 0
        """The highest counter that came from it."""
        self.floor = 0
        """Its datagrams up to this counter were meant for an earlier life of this host."""
        self.proven_at = 0
        """This host's own counter when the session was proven; later ones are for this life of the peer."""
        self._challenger: int | None = None
        self._own_floor = 0
        self._candidates: OrderedDict[int, Candidate] = OrderedDict()
        self._secret = secrets.token_bytes(32)
        self._proven = 0

    @property
    def succeeded(self) -> bool:
        """Whether the current session has taken the place of another, and is not the first."""
        return self._proven > 1

    def knows(self, session: int, counter: int) -> bool:
        """Whether a datagram, authentic or not, cannot be a new one of the current session."""
        if counter > self.highest or session != self.current:
            return False
        return counter <= self.floor or self.seen.has(counter) is not False

    def candidate(self, session: int) -> Candidate:
        """The candidate for a session that is not the current one."""
        found = self._candidates.get(session)
        if found is None:
            if len(self._candidates) >= PENDING_MAX:
                self._candidates.popitem(last=False)
            found = self._candidates[session] = Candidate()
        return found

    def hold(self, candidate: Candidate, flags: int, counter: int, plain: bytes) -> bool:
        """Keep a datagram until its session is proven; False if there is no room or it is a copy."""
        if candidate.held_bytes + len(plain) > HELD_BYTES_MAX or not candidate.seen.admit(counter):
            return False
        candidate.held.append((flags, counter, plain))
        candidate.held_bytes += len(plain)
        return True

    def should_ask(self, candidate: Candidate, now: Nanos) -> bool:
        """Whether it is time to ask for a proof, for the first time or again."""
        if candidate.ask_at is not None and now < candidate.ask_at:
            return False
        candidate.asks += 1
        candidate.ask_at = now + min(ASK_AGAIN_NS << max(0, candidate.asks - OFTEN), PAUSE_NS_MAX)
        return True

    def overdue(self, now: Nanos) -> Iterator[int]:
        """Sessions with waiting datagrams whose challenge is to be repeated now."""
        for session, candidate in self._candidates.items():
            if candidate.held and candidate.reminders < REMINDERS_MAX and self.should_ask(candidate, now):
                candidate.reminders += 1
                yield session

    def nonce(self, session: int) -> bytes:
        """The number that a session is challenged to seal."""
        text = session.to_bytes(8, "little") + self._proven.to_bytes(8, "little")
        return blake2b(text, key=self._secret, digest_size=NONCE_BYTES).digest()

    def answer(self, challenger: int, counter: int) -> int:
        """Take a challenge of a peer's session: returns the floor for the proof, given the own counter."""
        if challenger != self._challenger:
            known = self.proven_at if challenger == self.current else counter
            self._own_floor = 0 if self._challenger is None else known
            self._challenger = challenger
        return self._own_floor

    def answers(self, session: int, proof: Proof) -> bool:
        """Whether a proof is the answer to a challenge of this session."""
        return secrets.compare_digest(self.nonce(session), proof.nonce)

    def prove(self, session: int, proof: Proof) -> Candidate | None:
        """Take a proof: returns the candidate, now the current session, or None if the proof is wrong."""
        if not self.answers(session, proof):
            return None
        self.floor = proof.floor
        candidate = self._candidates.pop(session, None) or Candidate()
        self._proven += 1
        self.current, self.seen, self.highest = session, candidate.seen, 0
        return candidate
