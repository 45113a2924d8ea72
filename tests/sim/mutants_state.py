"""The transfer of application states, broken: its place, its contents, and what comes after it."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any
from unittest.mock import patch

from ordercast.components.application_state.donor import Donor
from ordercast.components.application_state.held import Held
from ordercast.components.application_state.member import StatefulMember
from ordercast.components.application_state.newcomer import Newcomer
from ordercast.core import (
    Carrier,
    Delivery,
    Env,
    GroupId,
    Joined,
    NodeId,
    Notice,
    Plan,
    State,
    StateWanted,
    View,
)
from ordercast.scenario.changes import Join, Leave
from ordercast.scenario.spec import WorkloadSpec
from ordercast.sim.applications import Applications
from ordercast.sim.run import Run, simulate
from tests.sim.mutant import Mutant, calm

JOINER: NodeId = 3
"""The node after the three receivers of group 0; it receives nothing at the start."""
CHANGES: dict[str, Any] = {
    "joiners": 1,
    "join": (Join(at_ms=40, node=JOINER), Join(at_ms=160, node=JOINER)),
    "leave": (Leave(at_ms=110, node=JOINER), Leave(at_ms=300, node=2)),
    "workload": WorkloadSpec(messages=250, rate_per_s=300),
    "options": {"application_state": True},
}
"""A node joins, leaves and joins again under load."""


def run_state(
    make: Callable[..., StatefulMember], seed: int, protocol: str = "view_synchronous", **changes: Any
) -> Run:
    """Run with members of another kind."""
    scenario = calm(protocol, seed, **(CHANGES | changes))
    plan = scenario.plan()
    return simulate(scenario, broken(make, plan))


def broken(make: Callable[..., StatefulMember], plan: Plan) -> Plan:
    """The plan with members that `make` makes, with the same arguments."""

    def factory(env: Env, original: Any) -> StatefulMember:
        return make(env, **original.keywords)

    return replace(
        plan,
        nodes=tuple(replace(node, factory=partial(factory, original=node.factory)) for node in plan.nodes),
    )


class Late(StatefulMember):
    """Asks its application only after the first message of the view."""

    _late: list[StateWanted] = []  # noqa: RUF012  (replaced, never changed)

    def _ask_application(self, view: View) -> None:
        wanted = self._donor.enter(view)
        if wanted is not None:
            self._late = [*self._late, wanted]

    def _pass(self, delivery: Delivery) -> None:
        super()._pass(delivery)
        if isinstance(delivery, Carrier):
            late, self._late = self._late, []
            for wanted in late:
                super()._pass(wanted)


class Gapped(StatefulMember):
    """Loses the first message after a state."""

    _began = False

    def _tell(self, delivery: Delivery) -> None:
        self._began = self._began or isinstance(delivery, State)
        if self._began and isinstance(delivery, Carrier):
            self._began = False
        else:
            super()._tell(delivery)


class Repeating(StatefulMember):
    """Passes on messages of the view before the state, which stands for them, after it."""

    _before: list[Delivery] = []  # noqa: RUF012  (replaced, never changed)

    def on_deliver(self, inner: str, delivery: Delivery) -> None:
        """Keep what should be left out."""
        if isinstance(delivery, Carrier) and not self._shows(delivery.groups):
            self._before = [*self._before, delivery]
        super().on_deliver(inner, delivery)

    def _tell(self, delivery: Delivery) -> None:
        super()._tell(delivery)
        if isinstance(delivery, View) and self._before and 0 in self.joined:
            before, self._before = self._before, []
            for one in before[-1:]:
                super()._tell(one)


class Unsettled(StatefulMember):
    """Joins without a state."""

    def _tell(self, delivery: Delivery) -> None:
        if not isinstance(delivery, State):
            super()._tell(delivery)


class Hasty(StatefulMember):
    """Passes on what should wait behind the state."""

    def _is_awaited(self, notice: Notice) -> bool:
        return False

    def _follow(self, newcomer: Newcomer) -> None:
        if newcomer.state is None:
            super()._follow(newcomer)
        else:
            self._tell(newcomer.state)
            del self._newcomers[newcomer.group]


class Corrupting(Donor):
    """Sends other bytes than it was given."""

    def give(self, group: GroupId, config: int, data: bytes) -> None:
        """The last byte is another one."""
        super().give(group, config, data[:-1] + bytes([data[-1] ^ 1]))


class Shifting(StatefulMember):
    """Says that it joined one view later than it did."""

    def _tell(self, delivery: Delivery) -> None:
        if isinstance(delivery, Joined) and delivery.config is not None:
            delivery = Joined(delivery.group, delivery.config + 1)
        super()._tell(delivery)


def corrupting(env: Env, **options: Any) -> StatefulMember:
    """A member that gives other bytes."""
    member = StatefulMember(env, **options)
    member._donor.__class__ = Corrupting
    return member


def another_group(seed: int) -> Run:
    """Applications give the state of the next group."""
    honest = Applications.state_of

    def state_of(self: Applications, node: NodeId, group: GroupId) -> bytes:
        return honest(self, node, 1 - group)

    with patch.object(Applications, "state_of", state_of):
        groups: dict[str, Any] = {"groups": 2, "join": (Join(at_ms=60, node=6),), "leave": ()}
        return run_state(StatefulMember, seed, **groups)


def alone(seed: int) -> Run:
    """Newcomers begin with nothing, although others have a state."""

    def ask(self: Newcomer) -> None:
        self._promise(JOINER)

    with patch.object(Newcomer, "ask", ask):
        return run_state(StatefulMember, seed)


def unheld(seed: int) -> Run:
    """The state comes before the notice that its group was joined."""

    def insert(self: Held, state: State) -> None:
        self._queue.insert(0, state)

    with patch.object(Held, "insert", insert):
        return run_state(StatefulMember, seed)


def _mutant(name: str, make: Callable[..., StatefulMember], *also: str, **changes: Any) -> Mutant:
    return Mutant(
        name, frozenset({"state-transfer"}), partial(run_state, make, **changes), also=frozenset(also)
    )


STATE_MUTANTS = [
    _mutant("a state is taken after a message of the view", Late),
    _mutant("a message is lost behind a state", Gapped, "agreement", "view-synchrony", "validity"),
    _mutant("a state and a message are the same", Repeating, "tenure", "view-synchrony", "configuration"),
    _mutant("a newcomer gets no state", Unsettled),
    _mutant("messages overtake a state", Hasty, "view-synchrony"),
    Mutant("a newcomer begins with nothing", frozenset({"state-transfer"}), alone),
    _mutant("a state is changed on its way", corrupting),
    _mutant("a newcomer is told of another view", Shifting, "tenure", "view-synchrony"),
    _mutant("a newcomer gets no state, in a total order", Unsettled, protocol="token_site"),
    Mutant("a state is that of another group", frozenset({"state-transfer"}), another_group),
    Mutant("a state comes before its group", frozenset({"state-transfer"}), unheld),
]
