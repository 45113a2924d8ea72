"""Processes that stack: an outer process owns inner ones.

The frame (`Stack`) routes messages, timers, saved state and explanations to the inner processes and keeps
their names apart. An inner process is an ordinary `Process`: it runs alone under a driver as well as inside
another, and it may own inner ones itself.

- A message goes to the inner process that declared its type, any other to the outer one.
- A timer or a saved state called ``tick`` of the inner process ``log`` is called ``log.tick`` outside.
- What an inner process delivers comes to `on_deliver` of the outer one at once, inside the inner handler. The
  outer one may pass it on, hold it, or answer it. There it may call only those methods of the inner process
  that allow it; everything else waits for `conclude`.
- After each event, the outer's own or an inner one's, `conclude` is called once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from ordercast.core.delivery import Delivery
from ordercast.core.errors import LocalError
from ordercast.core.explain import Explanation
from ordercast.core.ids import Groups, MessageId, NodeId
from ordercast.core.message import Message
from ordercast.core.process import Env, Process
from ordercast.core.time import Nanos

if TYPE_CHECKING:
    from random import Random

P = TypeVar("P", bound=Process)


class InnerEnv(Env):
    """The environment of an inner process: that of the outer one, with separate names."""

    __slots__ = ("_name", "_outer", "_outside", "_prefix")

    def __init__(self, outer: Stack, name: str) -> None:
        self._outer = outer
        self._outside = outer.env
        self._name = name
        self._prefix = f"{name}."

    @property
    def me(self) -> NodeId:  # type: ignore[override]  # it is the outer's, and stays so
        """The node of both."""
        return self._outside.me

    @property
    def now(self) -> Nanos:  # type: ignore[override]
        """The clock of both."""
        return self._outside.now

    @property
    def rng(self) -> Random:  # type: ignore[override]
        """The random numbers of both."""
        return self._outside.rng

    @property
    def forgot(self) -> bool:  # type: ignore[override]
        """Whether the node lost its saved state."""
        return self._outside.forgot

    def send(self, to: NodeId, message: Message) -> None:
        """Send it as the outer process would."""
        self._outside.send(to, message)

    def multicast(self, to: Sequence[NodeId], message: Message) -> None:
        """Send it as the outer process would."""
        self._outside.multicast(to, message)

    def set_timer(self, name: str, after: Nanos) -> None:
        """Arm a timer under a name that belongs to this process."""
        self._outside.set_timer(self._prefix + name, after)

    def cancel_timer(self, name: str) -> None:
        """Cancel a timer of this process."""
        self._outside.cancel_timer(self._prefix + name)

    def deliver(self, delivery: Delivery) -> None:
        """Hand it to the outer process."""
        self._outer.on_deliver(self._name, delivery)

    def save(self, name: str, state: bytes | None) -> None:
        """Save it under a name that belongs to this process."""
        self._outside.save(self._prefix + name, state)

    def executed(self, operations: int) -> None:
        """Note it as the outer process would."""
        self._outside.executed(operations)

    def originate(self, groups: Groups, payload: bytes, *, read: bool = False) -> tuple[MessageId, Nanos]:
        """Submit it as the outer process would."""
        return self._outside.originate(groups, payload, read=read)


class Stack(Process):
    """A process that owns inner ones. A subclass handles its own events; the frame routes the others."""

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self._inner: dict[str, Process] = {}
        self._takers: dict[type[Message], Process] = {}

    def embed(self, name: str, make: Callable[[Env], P], messages: Iterable[type[Message]] = ()) -> P:
        """Make an inner process, called `name`, that gets all messages of these types."""
        if not name or "." in name or name in self._inner:
            raise LocalError(
                f"the name of an inner process must be unique and have no dots; '{name}' is not valid"
            )
        inner = make(InnerEnv(self, name))
        for kind in messages:
            if kind in self._takers:
                raise LocalError(f"two inner processes take messages of type {kind.__name__}")
            self._takers[kind] = inner
        self._inner[name] = inner
        return inner

    # For subclasses to implement

    def on_own_message(self, source: NodeId, message: Message) -> None:
        """A message arrived that is for no inner process."""

    def on_own_timer(self, name: str) -> None:
        """A timer went off that no inner process had set."""

    def on_deliver(self, inner: str, delivery: Delivery) -> None:
        """An inner process delivers: pass it on, hold it, or answer it."""
        self.env.deliver(delivery)

    def conclude(self) -> None:
        """An event is over, one of this process or of an inner one: do what follows from it."""

    def explain_own(self) -> Explanation:
        """What waits in this process itself, and for what."""
        return Explanation({})

    # The frame

    def on_start(self, saved: Mapping[str, bytes]) -> None:
        """Start the inner processes, each with its saved state. Subclasses may extend this."""
        for name, inner in self._inner.items():
            start = len(name) + 1
            prefix = f"{name}."
            inner.on_start({key[start:]: state for key, state in saved.items() if key.startswith(prefix)})
        self.conclude()

    def on_message(self, source: NodeId, message: Message) -> None:
        """Route a message."""
        inner = self._takers.get(type(message))
        if inner is None:
            self.on_own_message(source, message)
        else:
            inner.on_message(source, message)
        self.conclude()

    def on_timer(self, name: str) -> None:
        """Route a timer."""
        owner, _, own_name = name.partition(".")
        inner = self._inner.get(owner)
        if inner is None:
            self.on_own_timer(name)
        else:
            inner.on_timer(own_name)
        self.conclude()

    def on_nodes(self, roles: Mapping[NodeId, str]) -> None:
        """Tell the inner processes which nodes there are now. Subclasses may extend this."""
        for inner in self._inner.values():
            inner.on_nodes(roles)
        self.conclude()

    def explain(self) -> Explanation:
        """What waits here and inside, oldest first; the state of an inner process goes by its name."""
        own = self.explain_own()
        state, waits, behind = dict(own.state), list(own.waits), [own.behind]
        for name, inner in self._inner.items():
            told = inner.explain()
            state.update((f"{name} {key}", value) for key, value in told.state.items())
            waits += told.waits
            behind.append(told.behind)
        lacks = ", ".join(filter(None, behind))
        return Explanation(state, tuple(sorted(waits, key=lambda wait: wait.since)), lacks)
