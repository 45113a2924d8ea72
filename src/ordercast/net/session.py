"""Sessions: which life of a peer speaks, and whether it speaks now.

A seal proves that a datagram was made by a holder of the key, and the counter that it is no copy of one that
came before. Neither tells a new life of a peer from a recording of an old one. So the first datagrams of an
unknown session wait, and its host is asked to seal a random number: only one that is alive can. When the
proof comes, what waited counts and the session replaces the one before.
"""

import secrets
from collections import OrderedDict
from dataclasses import dataclass, field

from ordercast.core import MILLISECOND, Nanos, Seen
from ordercast.net.packet import NONCE_BYTES

REPLAY_WINDOW = 4096
"""Datagrams that come later than this many others of their session count as copies."""
PENDING_MAX = 4
"""Sessions of a peer that are being asked for a proof; the oldest goes first."""
HELD_BYTES_MAX = 1 << 20
ASK_AGAIN_NS: Nanos = 20 * MILLISECOND


@dataclass(slots=True)
class Candidate:
    """A session that has not proved yet that it is alive."""

    nonce: bytes = field(default_factory=lambda: secrets.token_bytes(NONCE_BYTES))
    asked_at: Nanos | None = None
    seen: Seen = field(default_factory=lambda: Seen(REPLAY_WINDOW))
    held: list[tuple[int, int, bytes]] = field(default_factory=list)
    """Flags, counter and frames of what waits."""
    held_bytes: int = 0


class Sessions:
    """The sessions of one peer."""

    __slots__ = ("_candidates", "current", "highest", "seen")

    def __init__(self) -> None:
        self.current: int | None = None
        """The session that has proved that it is alive."""
        self.seen = Seen(REPLAY_WINDOW)
        self.highest = 0
        """The highest counter of it that came."""
        self._candidates: OrderedDict[int, Candidate] = OrderedDict()

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

    def prove(self, session: int, nonce: bytes) -> Candidate | None:
        """An answer came: the candidate, now the current session, or None if the answer is not the one."""
        candidate = self._candidates.get(session)
        if candidate is None or not secrets.compare_digest(candidate.nonce, nonce):
            return None
        del self._candidates[session]
        self.current, self.seen, self.highest = session, candidate.seen, 0
        return candidate
