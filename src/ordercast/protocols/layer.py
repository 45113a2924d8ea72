"""Protocols that are a layer on another one: they change what passes through, and order nothing themselves.

A layer stands on every receiver and every sender of the protocol below; infrastructure stays as it is. Its
author writes a `Layer`, and `layer_protocol` makes a `PROTOCOL` of it that stands on any other, by its name.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any

import msgspec

from ordercast.catalogue import find_protocol
from ordercast.core import (
    Carrier,
    Codec,
    Delivery,
    Deployment,
    Env,
    Explanation,
    Extension,
    GroupId,
    Groups,
    Guarantees,
    LocalError,
    Member,
    Message,
    Nanos,
    Node,
    OptionError,
    Options,
    Plan,
    Process,
    Protocol,
    Receiver,
    Stack,
    Stateful,
    Unconfirmed,
)
from ordercast.core.message import PAYLOAD_BYTES_MAX


class LayerOptions(Options, frozen=True):
    """Options of a layer: what it stands on."""

    over: str = "atomic_multicast"
    """The protocol below."""
    below: dict[str, Any] = msgspec.field(default_factory=dict)
    """Its options."""

    @property
    def detection_ns(self) -> Nanos:
        """That of the protocol below."""
        return msgspec.convert(self.below, find_protocol(self.over).options).detection_ns


class Layer(Stack, Member, Receiver, Stateful):
    """A process on top of one of the protocol below; it passes on what its author does not change."""

    def __init__(self, env: Env, make: Callable[[Env], Process], messages: Iterable[type[Message]]) -> None:
        super().__init__(env)
        self.below = self.embed("below", make, messages)

    def wrap(self, payload: bytes) -> bytes:
        """What goes down in place of what an application submits."""
        return payload

    def unwrap(self, payload: bytes) -> bytes:
        """What an application gets of what came up; `RemoteError` where no correct peer sends that."""
        return payload

    def submit(self, groups: Groups, payload: bytes) -> bool:
        """Hand it to the process below."""
        if not isinstance(self.below, Member):
            raise LocalError(f"node {self.env.me} is not a sender")
        wrapped = self.wrap(payload)
        if len(wrapped) > PAYLOAD_BYTES_MAX:
            raise LocalError(
                f"payload has {len(wrapped)} bytes with the layer's header; the limit is {PAYLOAD_BYTES_MAX}"
            )
        return self.below.submit(groups, wrapped)

    @property
    def joined(self) -> Collection[GroupId]:
        """The groups that the process below is in."""
        return self._receiver.joined

    def join(self, group: GroupId) -> None:
        """Hand it to the process below."""
        self._receiver.join(group)

    def leave(self, group: GroupId) -> None:
        """Hand it to the process below."""
        self._receiver.leave(group)

    def give_state(self, group: GroupId, config: int, data: bytes) -> None:
        """Hand it to the process below."""
        if not isinstance(self.below, Stateful):
            raise LocalError(f"node {self.env.me} does not bring states to newcomers")
        self.below.give_state(group, config, data)

    @property
    def _receiver(self) -> Receiver:
        if not isinstance(self.below, Receiver):
            raise LocalError(f"node {self.env.me} cannot join or leave groups")
        return self.below

    @property
    def in_doubt(self) -> int:
        """What the process below holds."""
        return self.below.in_doubt if isinstance(self.below, Member) else 0

    def on_deliver(self, inner: str, delivery: Delivery) -> None:
        """Hand it to the application."""
        if isinstance(delivery, Carrier | Unconfirmed):
            delivery = msgspec.structs.replace(delivery, payload=self.unwrap(delivery.payload))
        self.env.deliver(delivery)

    def explain(self) -> Explanation:
        """What waits below, with payloads as applications know them."""
        told = super().explain()
        waits = (
            wait if wait.payload is None else msgspec.structs.replace(wait, payload=self.unwrap(wait.payload))
            for wait in told.waits
        )
        return Explanation(told.state, tuple(waits), told.behind)


def layer_protocol(
    name: str,
    summary: str,
    make: type[Layer],
    guarantees: Callable[[Guarantees], Guarantees] = lambda below: below,
    messages: tuple[type[Message], ...] = (),
    options: type[LayerOptions] = LayerOptions,
) -> Protocol:
    """A layer as a protocol; its promises follow from those below, and it may have messages of its own."""

    def deploy(deployment: Deployment, chosen: Options) -> Plan:
        return extend(deployment, chosen, Extension())

    def extend(deployment: Deployment, chosen: Options, extension: Extension) -> Plan:
        if not isinstance(chosen, LayerOptions):
            raise LocalError(f"{name} takes {options.__name__}, not {type(chosen).__name__}")
        plan = plan_below(name, deployment, chosen, extension)
        return replace(
            plan,
            protocol=name,
            guarantees=guarantees(plan.guarantees),
            nodes=tuple(_stacked(node, plan, make) for node in plan.nodes),
            codec=Codec((*messages, *plan.codec.types)) if messages else plan.codec,
        )

    below = find_protocol(options().over)
    return Protocol(
        name=name,
        summary=summary,
        paper=f"a layer on any protocol, by default {below.name}",
        guarantees=guarantees(below.guarantees),
        options=options,
        deploy=deploy,
        roles=below.roles,
        vary=lambda rng: _vary(below, rng),
        extend=extend,
        stands_on=lambda chosen: find_below(chosen, below.name),
    )


def find_below(chosen: Mapping[str, object], usual: str) -> Protocol:
    """The protocol that a layer with these options stands on."""
    try:
        return find_protocol(str(chosen.get("over", usual)))
    except LocalError as error:
        raise OptionError("over", str(error)) from error


def plan_below(name: str, deployment: Deployment, chosen: LayerOptions, extension: Extension) -> Plan:
    """The plan of the protocol that a layer stands on, by the layer's options."""
    if chosen.over == name:
        raise OptionError("over", f"{name} cannot be a layer on itself")
    below = find_protocol(chosen.over)
    if below.serves:
        what = f"{name} cannot be a layer on {below.name}: its replicas execute what clients submit, as it is"
        raise OptionError("over", what)
    try:
        return below.deploy_extended(deployment, msgspec.convert(chosen.below, below.options), extension)
    except msgspec.ValidationError as error:
        raise OptionError("below", f"{name}: options of {below.name}: {error}") from error


def _stacked(node: Node, plan: Plan, make: type[Layer]) -> Node:
    """A receiver or a sender with the layer on it; any other node as it is."""
    if node.id not in plan.participants():
        return node
    return replace(node, factory=partial(make, make=node.factory, messages=plan.codec.types))


def _vary(below: Protocol, rng: Random) -> dict[str, object]:
    return {"below": below.vary(rng)}
