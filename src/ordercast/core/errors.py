"""Errors that say whose fault it was: the local caller's, or a remote peer's."""


class OrdercastError(Exception):
    """Base of every error that ordercast raises on purpose."""


class LocalError(OrdercastError, ValueError):
    """The caller on this machine asked for something that cannot be done."""


class RemoteError(OrdercastError):
    """Bytes from a peer were not what the contract allows."""
