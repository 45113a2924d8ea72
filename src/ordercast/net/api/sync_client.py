"""A client of a replicated service for scripts: the same as in `client.py`, without `async`.

with ordercast.connect_sync("cluster.toml", Store) as store:
    store.put("a", "1")
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, TypeVar

from ordercast.core import HostId, LocalError, Service, ServiceType, Shard, Undone
from ordercast.net.api.client import Client, NoOperation
from ordercast.net.api.connect import TIMEOUT_S, Connecting, connect
from ordercast.net.api.loop_thread import LoopThread
from ordercast.net.api.transaction import SyncTransacting

S = TypeVar("S", bound=Service)


class SyncConnecting(Generic[S]):
    """What `connect_sync` returns; entering it gives a stand-in for the service."""

    def __init__(self, connecting: Connecting[S], service: type[S]) -> None:
        self._connecting = connecting
        self._stand_in = _stand_in_for(service)
        self._thread = LoopThread()

    def __enter__(self) -> S:
        """Start a thread with a client."""
        client = self._thread.start(self._connecting.__aenter__())
        stand_in = object.__new__(self._stand_in)
        object.__setattr__(stand_in, "_calls", _Calls(self._thread, client))
        return stand_in

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Wait for calls under way, stop the client, and end the thread."""
        try:
            self._thread.do(self._connecting.__aexit__(kind, error, traceback))
        finally:
            self._thread.end()


class _Calls:
    """Calls operations from any thread."""

    def __init__(self, thread: LoopThread, client: Client[Any]) -> None:
        self._thread = thread
        self._client = client

    def call(self, operation: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call an operation in the thread of the client, and wait for its result."""
        return self._thread.do(self._client.call(operation, *args, **kwargs))

    def transaction(self, writes: Sequence[str], reads: Sequence[str]) -> SyncTransacting:
        """A general transaction that any thread may enter."""
        return SyncTransacting(self._thread, self._client.transaction(writes, reads))


def _stand_in_for(service: type[S]) -> type[S]:
    """A class that looks like the service, and whose operations are calls."""
    found = ServiceType.of(service)
    members: dict[str, Any] = {name: _remote(getattr(service, name)) for name in found.operations}

    def missing(self: object, name: str) -> Any:
        raise NoOperation(
            f"{service.__name__}.{name} is at the replicas; from here only operations can be called:"
            f" {', '.join(found.operations)}"
        )

    def fixed(self: object, name: str, value: object) -> None:
        raise LocalError(f"the state of {service.__name__} is at the replicas; only operations change it")

    if issubclass(service, Shard):
        members.setdefault("transaction", _general)
    members |= {"__getattr__": missing, "__setattr__": fixed, "__doc__": service.__doc__}
    return type(service.__name__, (service,), members)


def _remote(operation: Callable[..., Any]) -> Callable[..., Any]:
    def call(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        return object.__getattribute__(self, "_calls").call(operation, args, kwargs)

    call.__name__, call.__doc__ = operation.__name__, operation.__doc__
    return call


def _general(self: object, writes: Sequence[str] = (), reads: Sequence[str] = ()) -> SyncTransacting:
    calls: _Calls = object.__getattribute__(self, "_calls")
    return calls.transaction(writes, reads)


_general.__name__, _general.__doc__ = Shard.transaction.__name__, Shard.transaction.__doc__


def connect_sync(
    file: str | Path,
    service: type[S],
    *,
    group: str = "",
    host: HostId | None = None,
    timeout: float | None = TIMEOUT_S,
    run: str = "",
    on_undone: Callable[[Undone], None] | None = None,
) -> SyncConnecting[S]:
    """Connect to a replicated service, as `connect` does, from a script.

    The result has the methods of the service; several threads may use it. That of a `Shard` makes general
    transactions too. `on_undone` is called in the thread of the client.
    """
    connecting = connect(file, service, group=group, host=host, timeout=timeout, run=run, on_undone=on_undone)
    return SyncConnecting(connecting, service)
