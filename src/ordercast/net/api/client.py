"""A client of a replicated service, as applications use it.

async with ordercast.connect("cluster.toml", Store) as store:
    await store.call(Store.put, "a", "1")
    await store.put("a", "1")             # the same; a type checker does not know the arguments
"""

from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

from ordercast.core import LocalError, OperationType, Service, ServiceType
from ordercast.net.api.open_calls import OpenCalls
from ordercast.net.api.transaction import Transacting

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S", bound=Service)


class NoOperation(LocalError, AttributeError):
    """The service has no operation with this name."""


class Client(Generic[S]):
    """Calls the operations of a service; many calls may be under way at a time.

    Besides `call`, every operation of the service is a method with its name. An operation that is itself
    named `call` or `transaction` can only be called by ``call(Store.call, ...)``.
    """

    def __init__(self, calls: OpenCalls, service: type[S]) -> None:
        self._calls = calls
        self._type = ServiceType.of(service)
        self._kinds: dict[Callable[..., Any], OperationType] = {
            getattr(service, name): kind for name, kind in self._type.operations.items()
        }

    def call(
        self, operation: Callable[Concatenate[S, P], R], /, *args: P.args, **kwargs: P.kwargs
    ) -> Coroutine[Any, Any, R]:
        """Call an operation, for example ``await client.call(Store.put, "a", "1")``, for its result.

        Raises `Refused` or `ServiceFailed` if the service answers so, and `Unknown` if no answer comes in
        time. With wrong arguments it raises `LocalError` and calls nothing.
        """
        kind = self._kinds.get(operation)
        if kind is None:
            raise self._unknown(getattr(operation, "__qualname__", str(operation)))
        return self._calls.call(kind, kind.pack(args, kwargs))

    def transaction(self, writes: Sequence[str] = (), reads: Sequence[str] = ()) -> Transacting:
        """A general transaction: entered with ``async with``, it locks and reads all of its keys at once.
        Leaving the block commits it; an exception aborts it.

            async with bank.transaction(writes=("alice", "bob")) as t:
                if t["alice"] < 30:
                    raise ordercast.Abort
                t["alice"] -= 30
                t["bob"] += 30
        """
        return Transacting(self._calls, writes, reads)

    def __getattr__(self, name: str) -> Callable[..., Coroutine[Any, Any, Any]]:
        """An operation of the service as a method."""
        if name.startswith("_") or name not in self._type.operations:
            raise self._unknown(name)
        method = partial(self.call, getattr(self._type.service, name))
        self.__dict__[name] = method
        return method

    def _unknown(self, name: str) -> NoOperation:
        known = ", ".join(self._type.operations)
        return NoOperation(f"{self._type.service.__name__} has no operation '{name}'; it has: {known}")
