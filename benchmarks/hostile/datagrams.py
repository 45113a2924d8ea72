"""Datagrams of somebody who has no key, but has recorded what hosts sent each other.

No host accepts any of them, and each counts one of the refusals. The exception are recordings of an earlier
life of a host. A few of them wait at their target for a proof that never comes.
"""

from collections.abc import Callable, Mapping, Sequence
from random import Random

from ordercast.core import HostId
from ordercast.net.links.datagram import DATA, HEADER, HEADER_BYTES, MAGIC, VERSION, write_frame
from ordercast.net.links.keyring import Key, Keyring
from ordercast.net.links.seal import Sealed
from ordercast.net.links.wire import new_session

EACH = 64
"""Datagrams of each kind to each host; they are sent again and again."""
LIVES = 2
OLD = 8
"""Recordings of each of two earlier lives."""
SIZE_MAX = 1_400


class Forger:
    """Makes hostile datagrams to one host, from true ones of another."""

    def __init__(self, target: HostId, recorded: Sequence[bytes], keys: Keyring, seed: int) -> None:
        self._recorded = recorded
        self._keys = keys
        self._rng = Random(f"{seed}/{target}")
        self._source: HostId = HEADER.unpack_from(recorded[0])[4]

    def datagrams(self) -> list[bytes]:
        """So many of each kind, in random order."""
        kinds: tuple[Callable[[], bytes], ...] = (
            self._random,
            self._looks_right,
            self._flipped,
            self._cut,
            self._spliced,
            self._replayed,
            self._other_key,
        )
        made = [kind() for kind in kinds for _ in range(EACH)] + self._earlier_lives()
        self._rng.shuffle(made)
        return made

    def _true(self) -> bytes:
        return self._rng.choice(self._recorded)

    def _random(self) -> bytes:
        return self._rng.randbytes(self._rng.randrange(1, SIZE_MAX))

    def _looks_right(self) -> bytes:
        """The header of a session that is not known: the host must derive a key to find out."""
        rng, key = self._rng, self._keys.active.id
        words = (MAGIC, VERSION, 0, key, self._source, rng.getrandbits(64), rng.getrandbits(32))
        return HEADER.pack(*words) + rng.randbytes(rng.randrange(16, SIZE_MAX))

    def _flipped(self) -> bytes:
        datagram = bytearray(self._true())
        bit = self._rng.randrange(8 * len(datagram))
        datagram[bit // 8] ^= 1 << bit % 8
        return bytes(datagram)

    def _cut(self) -> bytes:
        datagram = self._true()
        return datagram[: self._rng.randrange(1, len(datagram))]

    def _spliced(self) -> bytes:
        """The header of one with the body of another, which has another counter."""
        at = self._rng.randrange(1, len(self._recorded))
        return self._recorded[at - 1][:HEADER_BYTES] + self._recorded[at][HEADER_BYTES:]

    def _replayed(self) -> bytes:
        return self._true()

    def _other_key(self) -> bytes:
        """Sealed with another key, which may pretend to be the right one."""
        key = Key.of(self._rng.randbytes(32))
        if self._rng.random() < 0.5:
            key = Key(self._keys.active.id, key.secret)
        return _sealed(self._source, Keyring.of([key]), 1)

    def _earlier_lives(self) -> list[bytes]:
        """What a host sent in lives that are over, again and again."""
        made = []
        for _ in range(LIVES):
            seal = Sealed(self._source, new_session(), self._keys)
            made += [
                seal.close(0, counter, write_frame(DATA, 0, b"", 0, b"old")) for counter in range(1, 1 + OLD)
            ]
        return made * (EACH // len(made))


def _sealed(host: HostId, keys: Keyring, counter: int) -> bytes:
    frame = write_frame(DATA, 0, b"", 0, b"let me in")
    return Sealed(host, new_session(), keys).close(0, counter, frame)


def hostile_datagrams(
    recorded: Mapping[HostId, Sequence[bytes]], keys: Keyring, seed: int
) -> dict[HostId, list[bytes]]:
    """Hostile datagrams to each host."""
    return {target: Forger(target, true, keys, seed).datagrams() for target, true in recorded.items()}
