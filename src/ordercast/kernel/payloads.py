"""Checks of the messages that an application submits."""

from collections.abc import Sequence

from ordercast.core import LocalError
from ordercast.core.bundle import MESSAGE_BYTES_MAX

_BYTES = {bytes}


def check_payload(payload: bytes) -> None:
    """Raise `LocalError` if a payload is not a valid message."""
    if type(payload) is not bytes:
        raise LocalError(f"a message must be of type bytes, not {type(payload).__name__}")
    if len(payload) > MESSAGE_BYTES_MAX:
        raise LocalError(
            f"message of {len(payload)} bytes is too large; the limit is {MESSAGE_BYTES_MAX} bytes"
        )


def check_payloads(payloads: Sequence[bytes]) -> None:
    """Raise `LocalError` if one of the payloads is not a valid message, or if there are none."""
    if len(payloads) == 1:
        check_payload(payloads[0])
        return
    if not payloads:
        raise LocalError("there is no message to send")
    if set(map(type, payloads)) != _BYTES or max(map(len, payloads)) > MESSAGE_BYTES_MAX:
        for payload in payloads:
            check_payload(payload)
