"""Bundles whose content is known. All receivers of a bundle deliver the same bytes, so it is unpacked
once."""

from collections.abc import Sequence
from typing import TypeAlias
from zlib import crc32

from ordercast.core import MessageId, Nanos
from ordercast.core.bundle import unpack_bundle

UNPACKED_MAX = 4096

Facts: TypeAlias = list[tuple[MessageId, Nanos, int, int]]
"""Identity, time of submission, size and digest of the messages in a bundle."""


class Unpacked:
    """The contents of bundles, remembered for a while."""

    __slots__ = ("_known", "get")

    def __init__(self) -> None:
        self._known: dict[bytes, Facts] = {}
        self.get = self._known.get
        """The facts of a bundle, if they are remembered."""

    def learn(self, payload: bytes) -> Facts:
        """Unpack a bundle; `RemoteError` if it is malformed."""
        return self.remember(payload, *unpack_bundle(payload))

    def remember(
        self, packed: bytes, first: MessageId, times: Sequence[Nanos], payloads: Sequence[bytes]
    ) -> Facts:
        """Remember the messages of a bundle, so that its deliveries need not unpack it."""
        if len(self._known) >= UNPACKED_MAX:
            self._known.clear()
        if len(payloads) == 1:
            payload = payloads[0]
            facts = [(first, times[0], len(payload), crc32(payload))]
        else:
            numbered = enumerate(zip(times, payloads, strict=True), first)
            facts = [(message, when, len(payload), crc32(payload)) for message, (when, payload) in numbered]
        self._known[packed] = facts
        return facts
