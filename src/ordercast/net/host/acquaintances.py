"""The storages by which a host knows the others, kept with its own saved state.

What is learnt of a peer is saved in the same turn, so it is durable before anything that the peer says takes
effect. See `net/links/acquaintance.py` for the rules.
"""

import logging
from collections.abc import Callable

import msgspec

from ordercast.core import HostId, LocalError
from ordercast.net.host.identities import OURS
from ordercast.net.host.store import ADVICE, Store
from ordercast.net.host.turn import Turn
from ordercast.net.links.acquaintance import StorageClaim, Verdict

_log = logging.getLogger("ordercast")

_PREFIX = "peer "
_REASONS = {
    Verdict.OTHER: "knows this host by another saved state, which is lost or was replaced",
    Verdict.REPLACED: "knows that this host came back as a new member after it had this saved state",
    Verdict.OLDER: "knows a later life of this host: the saved state is an old copy",
}


class StateRefused(LocalError):
    """Other hosts do not let this one in, because its saved state is not the one that they know."""


class _Known(msgspec.Struct, frozen=True, array_like=True):
    """What is remembered of a peer."""

    storage: bytes
    life: int
    replaced: tuple[bytes, ...] = ()
    """Its earlier storages, which must not come back."""


class Acquaintances:
    """What one host knows of the storages of others."""

    def __init__(self, host: HostId, store: Store, turn: Turn, fail: Callable[[BaseException], None]) -> None:
        self._host = host
        self._turn = turn
        self._fail = fail
        self._told: set[tuple[HostId, bytes]] = set()
        # A store without a file is a new one in each life.
        self.claim = StorageClaim(store.storage, store.lives, store.as_new or store.path is None)
        self._known = {
            int(name.removeprefix(_PREFIX)): msgspec.msgpack.decode(value, type=_Known)
            for name, value in store.load(OURS).items()
            if name.startswith(_PREFIX)
        }

    def judge(self, host: HostId, claim: StorageClaim) -> Verdict:
        """How the storage of another host is known here."""
        known = self._known.get(host)
        if known is None:
            return Verdict.UNKNOWN
        if claim.storage == known.storage:
            return Verdict.KNOWN if claim.life >= known.life else Verdict.OLDER
        return Verdict.REPLACED if claim.storage in known.replaced else Verdict.OTHER

    def meet(self, host: HostId, claim: StorageClaim) -> bool:
        """Let another host in and remember its storage, or refuse it."""
        verdict = self.judge(host, claim)
        if verdict.refuses(claim):
            self._tell(host, claim)
            return False
        known = self._known.get(host)
        replaced = known.replaced if known is not None else ()
        if known is not None and verdict is Verdict.OTHER:
            replaced = (*replaced, known.storage)
        now = _Known(claim.storage, claim.life, replaced)
        if now != known:
            self._known[host] = now
            self._turn.saves[OURS, f"{_PREFIX}{host}"] = msgspec.msgpack.encode(now)
        return True

    def refused(self, host: HostId, verdict: Verdict) -> None:
        """Stop: another host does not let this one in."""
        reason = _REASONS[verdict]
        self._fail(StateRefused(f"host {self._host} is refused: host {host} {reason}; {ADVICE}"))

    def _tell(self, host: HostId, claim: StorageClaim) -> None:
        if (host, claim.storage) not in self._told:
            self._told.add((host, claim.storage))
            _log.warning(
                "host %d is not let in: its saved state is not the one that it had here before", host
            )
