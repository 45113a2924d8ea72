"""A member of a cluster that lies: well-typed messages with values that no correct peer sends.

It takes messages that were truly sent, and made-up ones of all types, and replaces some of their values: by
extremes, by the next number, by huge or empty tuples, by nodes and groups that there are not. All of them
pass the codec, as they would behind a valid seal.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any

import msgspec
from msgspec import inspect

from ordercast.core import MILLISECOND, Codec, Env, Message, Node, NodeId, Plan, Process, RemoteError
from ordercast.scenario.spec import Scenario
from ordercast.sim.build import build_world
from ordercast.sim.run import Run, drive
from ordercast.sim.world import World

KEPT = 300
"""True messages of each type to choose from, the newest."""
EXTREMES = (2**56, 2**58, 2**60, 2**62, 2**63 - 1)
"""Beyond all bounds. Numbers and clocks below them may be true, for all that a peer can know."""
UNKNOWN = (99, 999, 2**20 - 1)
NAMES = frozenset({"origin", "group", "groups", "node", "source", "sender", "active", "sequencer"})
"""Fields whose numbers are those of nodes and groups."""
HUGE = 4096

Told = tuple[NodeId, NodeId, Message]
"""Who tells whom what."""


class Liar:
    """Draws hostile messages."""

    def __init__(self, codec: Codec, rng: Random, *, near: bool = False) -> None:
        self._codec = codec
        self._rng = rng
        self._near = near
        """Whether numbers are changed by one only."""
        self._true: dict[type[Message], list[Told]] = {}

    def hear(self, told: Told) -> None:
        """A true message."""
        kept = self._true.setdefault(type(told[2]), [])
        if len(kept) < KEPT:
            kept.append(told)
        else:
            kept[self._rng.randrange(KEPT)] = told

    def tell(self, nodes: int) -> Told:
        """A hostile message, its pretended source and its target."""
        while True:
            kind = self._rng.choice(self._codec.types)
            source, target, true = self._template(kind, nodes)
            content = list(msgspec.to_builtins(true, builtin_types=(bytes,)))
            for _ in range(self._rng.choice((1, 1, 2)) if len(content) > 1 else 0):
                place = self._rng.randrange(1, len(content))
                named = true.__struct_fields__[place - 1] in NAMES
                content[place] = self._changed(content[place], named=named)
            try:
                message = self._codec.decode(msgspec.msgpack.encode(content))
            except (RemoteError, OverflowError):
                continue  # not well-typed
            if message != true:
                return source, target, _unsent(message)

    def _template(self, kind: type[Message], nodes: int) -> Told:
        known = self._true.get(kind)
        if known and self._rng.random() < 0.9:
            return self._rng.choice(known)
        source, target = self._rng.sample(range(nodes), 2)
        return source, target, msgspec.convert(self._made_up(kind), kind)

    def _made_up(self, kind: type[Any]) -> list[Any]:
        info = inspect.type_info(kind)
        assert isinstance(info, inspect.StructType)
        tag = kind.__struct_config__.tag
        return [*(() if tag is None else (tag,)), *(self._value(field.type) for field in info.fields)]

    def _value(self, kind: inspect.Type) -> Any:
        match kind:
            case inspect.IntType():
                return max(kind.ge or 0, self._rng.choice((0, 1, 2, 3)))
            case inspect.BytesType():
                least, most = kind.min_length or 0, kind.max_length or 30
                return self._rng.randbytes(min(most, max(least, self._rng.choice((0, 1, 30)))))
            case inspect.BoolType():
                return self._rng.random() < 0.5
            case inspect.LiteralType():
                return self._rng.choice(kind.values)
            case inspect.EnumType():
                return self._rng.choice(list(kind.cls)).value
            case inspect.VarTupleType():
                return [self._value(kind.item_type) for _ in range(self._rng.choice((1, 1, 2)))]
            case inspect.TupleType():
                return [self._value(item) for item in kind.item_types]
            case inspect.NamedTupleType():
                return [self._value(field.type) for field in kind.fields]
            case inspect.StructType():
                return self._made_up(kind.cls)
            case inspect.UnionType():
                return self._value(self._rng.choice(kind.types))
        return None

    def _changed(self, value: Any, *, named: bool) -> Any:
        """A value with one of its parts replaced."""
        rng = self._rng
        if isinstance(value, list | tuple) and value and rng.random() < 0.9:
            place = rng.randrange(len(value))
            changed = self._changed(value[place], named=named)
            return [changed if at == place else part for at, part in enumerate(value)]
        if isinstance(value, list | tuple):
            longer = [] if self._near or not value else [list(value) * (HUGE // len(value))]
            return rng.choice([[], [*value, *value], [*value][::-1], [*value][:-1], *longer])
        if isinstance(value, bool):
            return not value
        if isinstance(value, int):
            return self._number(value, named=named)
        if isinstance(value, bytes) and self._near:
            return rng.choice((b"", rng.randbytes(40), value[:-1], value + b"\0", bytes(1 << 16)))
        return value

    def _number(self, value: int, *, named: bool) -> int:
        if self._near:
            return value + self._rng.choice((1, -1, 2))
        extreme = self._rng.choice(EXTREMES)
        return int(self._rng.choice((extreme, extreme - 1, value + extreme, *(UNKNOWN if named else ()))))


class HostileRun:
    """A scenario in which messages of a liar come between the true ones."""

    def __init__(self, scenario: Scenario, seed: int, *, near: bool = False) -> None:
        self.scenario = scenario
        self.refusals: Counter[str] = Counter()
        self.taken: Counter[str] = Counter()
        """Hostile messages that no process refused, by type."""
        self.wishers: set[NodeId] = set()
        """In whose name lies were told about the groups that they want to be in; they alone can know that."""
        plan = scenario.plan()
        self._rng = Random(f"{seed}/hostile")
        self.liar = Liar(plan.codec, self._rng, near=near)
        nodes = tuple(replace(node, factory=partial(self._tapped, node)) for node in plan.nodes)
        self.plan: Plan = replace(plan, nodes=nodes)
        self.world: World = build_world(scenario, self.plan)

    def run(self, messages: int, begin_ms: float, end_ms: float) -> Run:
        """Let the liar send so many messages between two times, and judge the run."""
        for place in range(messages):
            at = begin_ms + (end_ms - begin_ms) * place / messages
            self.world.scheduler.at(round(at * MILLISECOND), self._inject)
        return drive(self.scenario, self.world)

    def _inject(self) -> None:
        source, target, message = self.liar.tell(len(self.plan.nodes))
        env = self.world.envs[target]
        if env.host.up and source != target:
            env.host.arrive(env.handle, source, Lie(message))

    def _tapped(self, node: Node, env: Env) -> Process:
        """A process that survives what it refuses, as a live host does."""
        process = node.factory(env)
        handler = process.on_message

        def on_message(source: NodeId, message: Message | Lie) -> None:
            lie = isinstance(message, Lie)
            told: Message = message.message if isinstance(message, Lie) else message
            if not lie and source != env.me:  # nobody lies to itself
                self.liar.hear((source, env.me, told))
            self._handle(handler, source, told, lie=lie)

        process.on_message = on_message  # type: ignore[method-assign]
        return process

    def _handle(
        self, handler: Callable[[NodeId, Message], None], source: NodeId, told: Message, *, lie: bool
    ) -> None:
        try:
            handler(source, told)
        except RemoteError:
            self.refusals[type(told).__name__] += 1
        else:
            if lie:
                self.taken[type(told).__name__] += 1
                if hasattr(told, "wants"):
                    self.wishers.add(source)


class Lie:
    """A hostile message on its way, to tell it from true ones."""

    __slots__ = ("message",)

    def __init__(self, message: Message) -> None:
        self.message = message


def _unsent(message: Any) -> Any:
    """The same without what an application submitted: a member may of course submit something twice."""
    if hasattr(message, "payload"):
        message = msgspec.structs.replace(message, payload=b"a lie")
    if hasattr(message, "events"):
        events = tuple(_unsent(event) for event in message.events)
        message = msgspec.structs.replace(message, events=events)
    return message
