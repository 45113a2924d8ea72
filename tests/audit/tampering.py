"""Traces of honest runs, tampered with: a few rows exchanged, taken out, doubled or changed, by a seed."""

from collections.abc import Callable
from functools import partial
from random import Random

from ordercast.catalogue import protocol_names
from ordercast.core import (
    Agreement,
    Causality,
    Consistency,
    Deployment,
    Gaps,
    Guarantees,
    MessageId,
    Order,
    Plan,
    message_id,
)
from ordercast.scenario.swarm import swarm_scenario
from ordercast.sim.run import Run, simulate
from ordercast.trace import ADDED, REMOVED, Event, Kind
from tests.sim.models import peers, sequencer, subscriptions
from tests.sim.models.sequencer import ViewReceiver
from tests.sim.mutant import deploy

PLANS: dict[str, Callable[[Deployment], Plan]] = {
    **{name: partial(deploy, name) for name in protocol_names()},
    "lossy sequencer": sequencer.plan,
    "sequencer with views": partial(sequencer.plan, guarantees=sequencer.VIEWS, make=ViewReceiver),
    "fifo peers": partial(peers.plan, causality=Causality.FIFO),
    "causal peers": partial(peers.plan, causality=Causality.CAUSAL),
    "subscriptions": subscriptions.plan,
    "subscriptions to overlapping groups": subscriptions.overlapping,
}

EVERYTHING = Guarantees(
    order=Order.ACROSS,
    agreement=Agreement.NOTIFIED,
    uniform=True,
    validity=True,
    causality=Causality.CAUSAL,
    gaps=Gaps.NOTIFIED,
    views=True,
    consistency=Consistency.LINEARIZABLE,
)
"""More than any protocol promises: then every property is judged."""


def honest(plan: str, seed: int) -> Run:
    """A run of the swarm, of a protocol or model that keeps its promises."""
    scenario = swarm_scenario("", seed, PLANS[plan])
    return simulate(scenario, PLANS[plan](scenario.deployment()))


def tampered(events: list[Event], seed: int) -> list[Event]:
    """The same events with a few faults."""
    rng = Random(seed)
    events = list(events)
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        if len(events) > 2:
            rng.choice(TAMPERINGS)(events, rng)
    return events


def _pick(events: list[Event], rng: Random, *kinds: Kind) -> int:
    rows = [row for row, event in enumerate(events) if not kinds or event.kind in kinds]
    return rng.choice(rows) if rows else rng.randrange(len(events))


def _next_of_node(events: list[Event], row: int) -> int:
    node = events[row].node
    return next((r for r in range(row + 1, len(events)) if events[r].node == node), row)


def swap_neighbours(events: list[Event], rng: Random) -> None:
    """A node did two things the other way round."""
    row = _pick(events, rng, Kind.DELIVER)
    other = _next_of_node(events, row)
    swap(events, row, other)


def swap(events: list[Event], row: int, other: int) -> None:
    """Exchange what two rows say, but not when."""
    a, b = events[row], events[other]
    events[row] = b._replace(time_ns=a.time_ns, clock_ns=a.clock_ns)
    events[other] = a._replace(time_ns=b.time_ns, clock_ns=b.clock_ns)


def swap_rows(events: list[Event], rng: Random) -> None:
    """Two rows change places, times and all."""
    a, b = rng.randrange(len(events)), rng.randrange(len(events))
    events[a], events[b] = events[b], events[a]


def take_out(events: list[Event], rng: Random) -> None:
    """A row is missing."""
    del events[_pick(events, rng, *rng.choice(((Kind.DELIVER,), (Kind.SUBMIT,), (Kind.VIEW, Kind.DROP), ())))]


def double(events: list[Event], rng: Random) -> None:
    """A row is there twice, the second time somewhat later."""
    row = _pick(events, rng, *rng.choice(((Kind.DELIVER,), (Kind.SUBMIT,), (Kind.VIEW, Kind.DROP), ())))
    at = rng.randrange(row, len(events)) + 1
    events.insert(at, events[row]._replace(time_ns=events[at - 1].time_ns))


def move(events: list[Event], rng: Random) -> None:
    """A row stands elsewhere."""
    event = events.pop(_pick(events, rng, Kind.DELIVER))
    events.insert(rng.randrange(len(events)), event)


def other_node(events: list[Event], rng: Random) -> None:
    """A row is said to be of another node."""
    row = _pick(events, rng)
    events[row] = events[row]._replace(node=rng.choice(events).node)


def other_message(events: list[Event], rng: Random) -> None:
    """A delivery is of another message, perhaps one that nobody submitted."""
    row = _pick(events, rng, Kind.DELIVER, Kind.SUBMIT)
    known: list[MessageId] = [event.message for event in events if event.message is not None]
    events[row] = events[row]._replace(message=rng.choice([*known[:9], message_id(3, 999_999), None]))


def other_field(events: list[Event], rng: Random) -> None:
    """A field has another row's value."""
    row = _pick(events, rng, *rng.choice(((Kind.DELIVER,), (Kind.VIEW, Kind.DROP), ())))
    name = rng.choice(
        (
            "groups",
            "numbers",
            "submitted_ns",
            "stamp_clock",
            "stamp_issuer",
            "members",
            "config",
            "peer",
            "digest",
            "label",
        )
    )
    events[row] = events[row]._replace(**{name: getattr(rng.choice(events), name)})


def move_view(events: list[Event], rng: Random) -> None:
    """A view or a notification stands elsewhere."""
    event = events.pop(_pick(events, rng, Kind.VIEW, Kind.DROP))
    at = rng.randrange(len(events))
    events.insert(at, event._replace(time_ns=events[at].time_ns, clock_ns=events[at].clock_ns))


def other_change(events: list[Event], rng: Random) -> None:
    """A view, or all views of a configuration, make another change, or one where there was none."""
    row = _pick(events, rng, Kind.VIEW)
    event = events[row]
    number, issuer = (event.numbers or (1,))[0], event.stamp_issuer or 1
    ways: tuple[dict[str, object], ...] = (
        {"label": ADDED},
        {"label": REMOVED},
        {"label": None},
        {"numbers": (number + rng.choice((-1, 1)),)},
        {"stamp_issuer": issuer + rng.choice((-1, 1))},
        {"stamp_clock": 1},
        {"label": REMOVED, "numbers": (number,), "stamp_issuer": issuer},
    )
    fields = rng.choice(ways)
    everywhere = rng.random() < 0.5
    for other, view in enumerate(events):
        same = view.kind is Kind.VIEW and (view.groups, view.config) == (event.groups, event.config)
        if other == row or (everywhere and same):
            events[other] = view._replace(**fields)  # type: ignore[arg-type]


def other_kind(events: list[Event], rng: Random) -> None:
    """A row is of another kind."""
    row = _pick(events, rng)
    kind = rng.choice((Kind.DELIVER, Kind.OUT_OF_ORDER, Kind.CRASH, Kind.RECOVER, Kind.COMPLETE))
    events[row] = events[row]._replace(kind=kind, label=rng.choice(("saved", "lost")))


def restart(events: list[Event], rng: Random) -> None:
    """A node crashes, and perhaps comes back, with or without its state."""
    row = rng.randrange(len(events))
    event = events[row]
    crash = Event(event.time_ns, event.clock_ns, event.node, Kind.CRASH)
    back = crash._replace(kind=Kind.RECOVER, label=rng.choice(("saved", "lost")))
    events[row + 1 : row + 1] = [crash, back] if rng.random() < 0.8 else [crash]


def same_stamp(events: list[Event], rng: Random) -> None:
    """A message, at one receiver or at all, has the stamp of another."""
    row, other = _pick(events, rng, Kind.DELIVER), events[_pick(events, rng, Kind.DELIVER)]
    message, everywhere = events[row].message, rng.random() < 0.5
    stamp = {name: getattr(other, name) for name in ("stamp_clock", "stamp_issuer", "numbers")}
    for place, event in enumerate(events):
        if place == row or (everywhere and event.kind is Kind.DELIVER and event.message == message):
            events[place] = event._replace(**stamp)


def tag(events: list[Event], rng: Random) -> None:
    """Deliveries of a node are tagged as out of order."""
    node = events[_pick(events, rng, Kind.DELIVER)].node
    for place, event in enumerate(events):
        if event.node == node and event.kind is Kind.DELIVER and rng.random() < 0.3:
            events[place] = event._replace(kind=Kind.OUT_OF_ORDER)


def other_configuration(events: list[Event], rng: Random) -> None:
    """A delivery or a notification names another configuration."""
    row = _pick(events, rng, Kind.DELIVER, Kind.DROP)
    events[row] = events[row]._replace(config=rng.randrange(4))


def answered(events: list[Event], rng: Random) -> None:
    """A message is complete, perhaps before its last delivery."""
    message = events[_pick(events, rng, Kind.SUBMIT)].message
    places = [place for place, event in enumerate(events) if event.message == message]
    at = min(len(events) - 1, (places or [0])[-1] + rng.choice((-1, 0, 0, 1, 2)))
    event = events[max(0, at)]
    events.insert(at, Event(event.time_ns, event.clock_ns, event.node, Kind.COMPLETE, message))


TAMPERINGS = (
    swap_neighbours,
    swap_neighbours,
    swap_rows,
    take_out,
    take_out,
    double,
    move,
    other_node,
    other_message,
    other_field,
    other_field,
    move_view,
    other_change,
    other_kind,
    restart,
    same_stamp,
    tag,
    other_configuration,
    answered,
)


def foresees(events: list[Event]) -> bool:
    """Whether a delivery stands before its submission: then the two judges may mend the order differently."""
    submitted = {event.message for event in events if event.kind is Kind.SUBMIT}
    seen: set[MessageId | None] = set()
    for event in events:
        if event.kind is Kind.SUBMIT:
            seen.add(event.message)
        elif event.kind in (Kind.DELIVER, Kind.OUT_OF_ORDER) and event.message in submitted - seen:
            return True
    return False
