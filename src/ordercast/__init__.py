"""Totally ordered group communication for Python."""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

__version__ = version("ordercast")

if TYPE_CHECKING:
    from ordercast.core import (
        Answer,
        Refused,
        Service,
        ServiceFailed,
        Shard,
        State,
        StateWanted,
        Undone,
        ask,
        continuation,
        operation,
        read,
        transaction,
    )
    from ordercast.core.open_transaction import Transaction
    from ordercast.net.api.client import Client
    from ordercast.net.api.connect import connect
    from ordercast.net.api.group import Group, UnconfirmedError
    from ordercast.net.api.join import join
    from ordercast.net.api.open_calls import Unknown
    from ordercast.net.api.pending import Pending
    from ordercast.net.api.received import OutOfOrder, Received
    from ordercast.net.api.sync_client import connect_sync
    from ordercast.net.api.sync_group import join_sync
    from ordercast.net.api.transaction import Abort

_LIVE = {
    "Answer": "ordercast.core",
    "Abort": "ordercast.net.api.transaction",
    "Client": "ordercast.net.api.client",
    "Group": "ordercast.net.api.group",
    "OutOfOrder": "ordercast.net.api.received",
    "Pending": "ordercast.net.api.pending",
    "Received": "ordercast.net.api.received",
    "Refused": "ordercast.core",
    "Service": "ordercast.core",
    "ServiceFailed": "ordercast.core",
    "Shard": "ordercast.core",
    "State": "ordercast.core",
    "StateWanted": "ordercast.core",
    "UnconfirmedError": "ordercast.net.api.group",
    "Transaction": "ordercast.core.open_transaction",
    "Undone": "ordercast.core",
    "Unknown": "ordercast.net.api.open_calls",
    "ask": "ordercast.core",
    "connect": "ordercast.net.api.connect",
    "connect_sync": "ordercast.net.api.sync_client",
    "continuation": "ordercast.core",
    "join": "ordercast.net.api.join",
    "join_sync": "ordercast.net.api.sync_group",
    "operation": "ordercast.core",
    "read": "ordercast.core",
    "transaction": "ordercast.core",
}

__all__ = [
    "Abort",
    "Answer",
    "Client",
    "Group",
    "OutOfOrder",
    "Pending",
    "Received",
    "Refused",
    "Service",
    "ServiceFailed",
    "Shard",
    "State",
    "StateWanted",
    "UnconfirmedError",
    "Transaction",
    "Undone",
    "Unknown",
    "__version__",
    "ask",
    "connect",
    "connect_sync",
    "continuation",
    "join",
    "join_sync",
    "operation",
    "read",
    "transaction",
]


def __getattr__(name: str) -> Any:
    """The live runtime is read in when it is first asked for: who only simulates need not wait for it."""
    if name in _LIVE:
        return getattr(import_module(_LIVE[name]), name)
    raise AttributeError(f"module 'ordercast' has no attribute '{name}'")
