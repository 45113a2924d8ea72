"""View synchrony, broken inside: in its flush, its agreement, its queue and its transfer of the state."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any
from unittest.mock import patch

from ordercast.components.membership.exchange import Exchange
from ordercast.components.membership.record import InstalledView, ViewRecord
from ordercast.components.membership.standing import CHANGING, MEMBER
from ordercast.components.membership.traffic import Traffic
from ordercast.core import MILLISECOND, Delivered, Env, NodeId, Plan, RemoteError
from ordercast.scenario.conditions import Conditions
from ordercast.scenario.faults import Crash, FaultSpec, Heal, Partition, Pause, Restart, Weather
from ordercast.scenario.spec import NetworkSpec, UniformSpec, WorkloadSpec
from ordercast.sim.run import Run, simulate
from tests.sim.mutant import Mutant, calm

Alter = Callable[[Any], None]
"""Breaks a member."""

SENDER: NodeId = 5
"""The first of the senders, which are members too."""
EVERYBODY = tuple(range(8))
CRASH = (Weather(at_ms=5, conditions=Conditions(loss=0.2)), Crash(at_ms=30, host=SENDER), Heal(at_ms=120))
"""A sender dies while packets are lost: the others have different parts of what it sent."""


def broken(alter: Alter, nodes: tuple[NodeId, ...], plan: Plan) -> Plan:
    """The plan with some members broken."""

    def make(env: Env, factory: Callable[[Env], Any]) -> Any:
        member = factory(env)
        alter(member.views)
        return member

    return replace(
        plan,
        nodes=tuple(
            replace(node, factory=partial(make, factory=node.factory)) if node.id in nodes else node
            for node in plan.nodes
        ),
    )


def run_broken(
    alter: Alter, nodes: tuple[NodeId, ...], faults: tuple[FaultSpec, ...], seed: int, **changes: Any
) -> Run:
    """Five receivers and three senders under load, with some members broken."""
    setting: dict[str, Any] = {
        "receivers": 5,
        "fault": faults,
        "network": NetworkSpec(latency=UniformSpec(50, 2000)),
        "workload": WorkloadSpec(messages=240, rate_per_s=800),
    }
    scenario = calm("view_synchronous", seed, **(setting | changes))
    return simulate(scenario, broken(alter, nodes, scenario.plan()))


# The flush


class Forgetting(Traffic):
    """Leaves out what it had not delivered when the change began."""

    __slots__ = ()

    def deliver_rest(self, cut: tuple[int, ...]) -> None:
        """Nothing more."""


class Hurried(Traffic):
    """Takes part of what it should have for all of it."""

    __slots__ = ()

    def reaches(self, cut: tuple[int, ...]) -> bool:
        """It always says so."""
        return True

    def deliver_rest(self, cut: tuple[int, ...]) -> None:
        """Deliver what is there."""
        super().deliver_rest(tuple(map(min, cut, self.received)))


def with_traffic(kind: type[Traffic], views: Any) -> None:
    """Handle the messages of each view in another way."""
    begin = views.exchange.begin

    class Mutated(Exchange):
        __slots__ = ()

        def begin(self, record: ViewRecord) -> None:
            begin(record)
            self.traffic.__class__ = kind

    views.exchange.__class__ = Mutated


def early_installer(views: Any) -> None:
    """Installs a view first, and delivers what is left of the view before after that."""
    announce = views._announce

    class Late(Traffic):
        __slots__ = ()

        def deliver_rest(self, cut: tuple[int, ...]) -> None:
            views.left = lambda: super(Late, self).deliver_rest(cut)

    def announcing(note: str = "") -> None:
        announce(note)
        views.__dict__.pop("left", lambda: None)()

    with_traffic(Late, views)
    views._announce = announcing


def never_stops(views: Any) -> None:
    """Sends while the view changes."""
    views.exchange._is_open = lambda: views.standing in (MEMBER, CHANGING)


# The agreement


def deciding_alone(faults: tuple[FaultSpec, ...], seed: int) -> Run:
    """Everybody takes itself for a majority."""
    with patch.object(ViewRecord, "majority", 1):
        return run_broken(tolerant, EVERYBODY, faults, seed)


def tolerant(views: Any) -> None:
    """Takes no offence at what the others say."""
    handler = views.on_message

    def on_message(source: NodeId, message: Any) -> None:
        with suppress(RemoteError):
            handler(source, message)

    views.on_message = on_message


def another_view(views: Any) -> None:
    """Tells its owner of a view without some of its members."""

    class Lying(type(views)):  # type: ignore[misc]
        @property
        def newest(self) -> InstalledView:
            found: InstalledView = super().newest
            if len(found.members) == len(EVERYBODY):
                return found
            return found._replace(members=found.members[:-4], groups=found.groups[:-4])

    views.__class__ = Lying


# The queue and the state


class Reversed(Exchange):
    """Sends what has waited in the wrong order."""

    __slots__ = ()

    def empty_queue(self) -> None:
        """The last one first."""
        self.queue.reverse()
        super().empty_queue()


class Leaky(Exchange):
    """Loses what has waited for a view."""

    __slots__ = ()

    def empty_queue(self) -> None:
        """Nothing is left to send."""
        self.queue.clear()


def with_exchange(kind: type[Exchange], views: Any) -> None:
    """Exchange messages in another way."""
    views.exchange.__class__ = kind


def stateless(views: Any) -> None:
    """Begins without the state."""
    views._restore = lambda state: None


def stays_on(views: Any) -> None:
    """Goes on alone after a view that leaves it out."""
    multicast = views.multicast

    def alone(payload: bytes) -> bool:
        if views.view is not None:
            return bool(multicast(payload))
        views.env.deliver(Delivered(payload, (0,), views.env.me, None, views.journal.record.number))
        return True

    views.multicast = alone


def _mutant(
    name: str,
    breaks: set[str],
    alter: Alter,
    nodes: tuple[NodeId, ...],
    faults: tuple[FaultSpec, ...] = CRASH,
    also: frozenset[str] = frozenset(),
    culprit: NodeId | None = None,
    **changes: Any,
) -> Mutant:
    run = partial(run_broken, alter, nodes, faults, **changes)
    return Mutant(name, frozenset(breaks), run, culprit, also)


UNSENT = frozenset({"agreement", "validity"})
"""Whoever delivers other messages than the others in a view also owes some."""

VIEWS_MUTANTS = [
    _mutant(
        "a member forgets what was not delivered when a view changes",
        {"view-synchrony"},
        partial(with_traffic, Forgetting),
        (1,),
        also=UNSENT,
        culprit=1,
    ),
    _mutant(
        "a member says that it has everything although it has not",
        {"view-synchrony"},
        partial(with_traffic, Hurried),
        (1,),
        also=UNSENT,
        culprit=1,
        options={"retry_ns": 200 * MILLISECOND},
    ),
    _mutant(
        "a member installs a view before its flush ends",
        {"view-synchrony"},
        early_installer,
        (1,),
        also=frozenset({"fifo"}),
        culprit=1,
    ),
    _mutant(
        "a member sends while a view changes",
        {"view-synchrony"},
        never_stops,
        (1,),
        (Crash(at_ms=30, host=2),),
        also=UNSENT,
        colocated=True,
    ),
    Mutant(
        "two sides decide on a view with the same number",
        frozenset({"view-synchrony"}),
        partial(deciding_alone, (Partition(at_ms=30, sides=((0, 1, 5), (2, 3, 4, 6, 7))),)),
        also=UNSENT,
    ),
    Mutant(
        "a minority goes on",
        frozenset({"view-synchrony"}),
        partial(deciding_alone, tuple(Crash(at_ms=30, host=host) for host in (2, 3, 4))),
        also=UNSENT,
    ),
    _mutant(
        "a member is told of another view than the others",
        {"view-synchrony"},
        another_view,
        (1,),
        also=UNSENT,
        culprit=1,
    ),
    _mutant(
        "a newcomer begins without the state",
        {"view-synchrony"},
        stateless,
        (1,),
        (Crash(at_ms=30, host=1), Restart(at_ms=60, host=1)),
        culprit=1,
    ),
    _mutant(
        "a sender mixes up what waited for the next view",
        {"fifo"},
        partial(with_exchange, Reversed),
        (SENDER + 1, SENDER + 2),
    ),
    _mutant(
        "a sender loses what waited for the next view",
        {"validity"},
        partial(with_exchange, Leaky),
        (SENDER + 1, SENDER + 2),
    ),
    _mutant(
        "an excluded member goes on",
        {"view-synchrony"},
        stays_on,
        (1,),
        (Pause(at_ms=30, host=1, for_ms=150),),
        also=UNSENT | {"configuration"},
        culprit=1,
        colocated=True,
        workload=WorkloadSpec(messages=720, rate_per_s=800),
    ),
]
