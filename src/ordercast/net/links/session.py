"""Sessions: which life of a peer speaks, and whether it speaks now.

A seal proves that a datagram was made by a holder of the key, and the counter that it is no copy of one that
came before. Neither tells a new life of a peer from a recording of an old one. So the first datagrams of an
unknown session wait, and its host is asked to seal a number that nobody can guess: only one that is alive
can. When the proof comes, what waited counts and the session replaces the one before. Question and answer may
get lost, so while something waits the question is asked again, for a second; after that, when more comes.

The number is made from a secret, the session, and how many sessions were proven before it. So it need not be
remembered, and recordings of many old lives cannot push the number of a living session out of memory; and a
proof is worth nothing any more once a session has been proven, so it cannot be played again.

A recording of a life that goes on is no better when it is played to a new life of the one it was for. The
proof says up to which counter its sender took the challenger for an earlier life: no datagram up to there
counts.
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
"""Sessions of a peer that are being asked for a proof; the oldest goes first."""
HELD_BYTES_MAX = 1 << 20
ASK_AGAIN_NS: Nanos = 20 * MILLISECOND
REMINDERS_MAX = 50
"""How often a session is asked again of one's own accord: one that is a recording never answers."""


@dataclass(slots=True)
class Candidate:
    """A session that has not proved yet that it is alive."""

    asked_at: Nanos | None = None
    seen: Seen = field(default_factory=lambda: Seen(REPLAY_WINDOW))
    held: list[tuple[int, int, bytes]] = field(default_factory=list)
    """Flags, counter and frames of what waits."""
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
        """The session that has proved that it is alive."""
        self.seen = Seen(REPLAY_WINDOW)
        self.highest = 0
        """The highest counter of it that came."""
        self.floor = 0
        """Its datagrams up to this counter were meant for an earlier life of this host."""
        self.proven_at = 0
        """This host's own counter when it was proven: all later ones were meant for this life of the peer."""
        self._challenger: int | None = None
        self._own_floor = 0
        self._candidates: OrderedDict[int, Candidate] = OrderedDict()
        self._secret = secrets.token_bytes(32)
        self._proven = 0

    @property
    def succeeded(self) -> bool:
        """Whether the current session has taken the place of another, and is not the first."""
        return self._proven > 1

    def candidate(self, session: int) -> Candidate:
        """What is known of a session that is not the current one."""
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
        if candidate.asked_at is not None and now - candidate.asked_at < ASK_AGAIN_NS:
            return False
        candidate.asked_at = now
        return True

    def overdue(self, now: Nanos) -> Iterator[int]:
        """Sessions that something waits for, and whose proof is to be asked for again."""
        for session, candidate in self._candidates.items():
            if candidate.held and candidate.reminders < REMINDERS_MAX and self.should_ask(candidate, now):
                candidate.reminders += 1
                yield session

    def nonce(self, session: int) -> bytes:
        """What a session is asked to seal."""
        text = session.to_bytes(8, "little") + self._proven.to_bytes(8, "little")
        return blake2b(text, key=self._secret, digest_size=NONCE_BYTES).digest()

    def answer(self, challenger: int, counter: int) -> int:
        """A session of the peer asks for a proof: the floor to tell it, given this host's own counter."""
        if challenger != self._challenger:
            known = self.proven_at if challenger == self.current else counter
            self._own_floor = 0 if self._challenger is None else known
            self._challenger = challenger
        return self._own_floor

    def prove(self, session: int, proof: Proof) -> Candidate | None:
        """An answer came: the candidate, now the current session, or None if the answer is not the one."""
        if not secrets.compare_digest(self.nonce(session), proof.nonce):
            return None
        self.floor = proof.floor
        candidate = self._candidates.pop(session, None) or Candidate()
        self._proven += 1
        self.current, self.seen, self.highest = session, candidate.seen, 0
        return candidate
