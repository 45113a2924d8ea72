"""What replicas tell each other about their sequencers, and what a durable one keeps of them."""

import msgspec

from ordercast.components.network_ordered.place import Natural
from ordercast.core import MALFORMED, RemoteError
from ordercast.protocols.hydra.messages import Step


class LaneTold(msgspec.Struct, frozen=True, array_like=True):
    """A lane, as another replica describes it."""

    sequencer: Natural
    node: Natural
    begun: Natural
    final: tuple[Natural, ...] | None
    ended: Natural
    """The clock of the boundary after which it counts no more."""


class Setting(msgspec.Struct, frozen=True, array_like=True):
    """The sequencers of a replica and the steps that it has applied, for one that has lost its memory."""

    steps: Natural
    newest: Natural
    latest: tuple[Natural, Natural]
    lanes: list[LaneTold]


class KeptOrdering(msgspec.Struct, frozen=True, array_like=True):
    """What a durable replica keeps of its ordering."""

    snapshot: bytes
    ended: dict[int, int]
    history: list[Step]


encode = msgspec.msgpack.encode
decode_kept = msgspec.msgpack.Decoder(KeptOrdering).decode
_settings = msgspec.msgpack.Decoder(Setting)
_steps = msgspec.msgpack.Decoder(list[Step])


def decode_setting(data: bytes) -> Setting:
    """A setting from another replica."""
    try:
        return _settings.decode(data)
    except MALFORMED as error:
        raise RemoteError(f"a replica describes no setting: {error}") from error


def decode_steps(data: bytes) -> tuple[Step, ...]:
    """Steps from another replica."""
    try:
        return tuple(_steps.decode(data))
    except MALFORMED as error:
        raise RemoteError(f"a replica tells of no steps: {error}") from error
