"""Ways to break a working plan from outside: an environment that meddles with what its process delivers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from ordercast.core import (
    Delivered,
    Delivery,
    Env,
    Guarantees,
    Message,
    Nanos,
    NodeId,
    Plan,
    Process,
)


class MeddlingEnv(Env):
    """Passes everything on, except that deliveries go through `meddle`."""

    def __init__(self, inner: Env, meddle: Meddle) -> None:
        self.inner = inner
        self.meddle = meddle
        self.memory: list[Delivery] = []

    @property
    def me(self) -> NodeId:  # type: ignore[override]
        """The node."""
        return self.inner.me

    @property
    def now(self) -> Nanos:  # type: ignore[override]
        """The clock."""
        return self.inner.now

    @property
    def rng(self):  # type: ignore[no-untyped-def,override]
        """The random numbers."""
        return self.inner.rng

    def send(self, to: NodeId, message: Message) -> None:
        """As it is."""
        self.inner.send(to, message)

    def multicast(self, to: Sequence[NodeId], message: Message) -> None:
        """As it is."""
        self.inner.multicast(to, message)

    def set_timer(self, name: str, after: Nanos) -> None:
        """As it is."""
        self.inner.set_timer(name, after)

    def cancel_timer(self, name: str) -> None:
        """As it is."""
        self.inner.cancel_timer(name)

    def save(self, name: str, state: bytes | None) -> None:
        """As it is."""
        self.inner.save(name, state)

    def deliver(self, delivery: Delivery) -> None:
        """Let the meddler say what becomes of it."""
        for made in self.meddle(self, delivery):
            self.inner.deliver(made)


Meddle = Callable[[MeddlingEnv, Delivery], list[Delivery]]


def meddled(
    plan: Plan, nodes: Sequence[NodeId], meddle: Meddle, guarantees: Guarantees | None = None
) -> Plan:
    """The plan with the deliveries of some nodes meddled with."""

    def factory(env: Env, make: Callable[[Env], Process]) -> Process:
        return make(MeddlingEnv(env, meddle))

    changed = tuple(
        replace(node, factory=partial(factory, make=node.factory)) if node.id in nodes else node
        for node in plan.nodes
    )
    return replace(plan, guarantees=guarantees or plan.guarantees, nodes=changed)


def every(count: int, change: Callable[[MeddlingEnv, Delivered], list[Delivery]]) -> Meddle:
    """Change one message in so many, and leave the others."""

    def meddle(env: MeddlingEnv, delivery: Delivery) -> list[Delivery]:
        if not isinstance(delivery, Delivered):
            return [delivery]
        env.memory.append(delivery)
        return change(env, delivery) if len(env.memory) % count == 0 else [delivery]

    return meddle
