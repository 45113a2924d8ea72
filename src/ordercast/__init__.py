"""Totally ordered group communication for Python."""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

__version__ = version("ordercast")

if TYPE_CHECKING:
    from ordercast.core import State, StateWanted
    from ordercast.net.api.group import Group, UnconfirmedError
    from ordercast.net.api.join import join
    from ordercast.net.api.pending import Pending
    from ordercast.net.api.received import OutOfOrder, Received
    from ordercast.net.api.sync_group import join_sync

_LIVE = {
    "Group": "ordercast.net.api.group",
    "OutOfOrder": "ordercast.net.api.received",
    "Pending": "ordercast.net.api.pending",
    "Received": "ordercast.net.api.received",
    "State": "ordercast.core",
    "StateWanted": "ordercast.core",
    "UnconfirmedError": "ordercast.net.api.group",
    "join": "ordercast.net.api.join",
    "join_sync": "ordercast.net.api.sync_group",
}

__all__ = [
    "Group",
    "OutOfOrder",
    "Pending",
    "Received",
    "State",
    "StateWanted",
    "UnconfirmedError",
    "__version__",
    "join",
    "join_sync",
]


def __getattr__(name: str) -> Any:
    """The live runtime is read in when it is first asked for: who only simulates need not wait for it."""
    if name in _LIVE:
        return getattr(import_module(_LIVE[name]), name)
    raise AttributeError(f"module 'ordercast' has no attribute '{name}'")
