"""Whom processes send to when Cyclon samples their peers, for a run of the engine (EpTO section 6, Figure 9).

Cyclon does not depend on what EpTO sends, so all its choices are made beforehand. They are those that
`components.sampling.Cyclon` makes, one for one, if in each tick first the processes that leave are replaced
(all of them, before one of the new ones asks for contacts), then messages arrive in the order in which they
were sent, then those shuffle whose time it is, in the order of their slots, and then the rounds of EpTO
follow.

The first processes know the first slots, or others `drawn` from all. A process that joins knows some that
are there, as an introducer would tell it. With `warmup_ticks`, Cyclon runs for so long before the first
round: EpTO is then started in a system whose views are mixed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ordercast.components.sampling.cyclon import CyclonOptions
from ordercast.components.sampling.draws import stream as stream_of
from ordercast.core import LocalError
from ordercast.engines.epto.cyclon_state import IGNORED, LOST, NOBODY, PURGED, SENT, Mail, Nodes, Rules
from ordercast.engines.epto.cyclon_steps import begin_all, ticks
from ordercast.engines.epto.network import LATENCY, Latencies
from ordercast.engines.epto.setup import Setup
from ordercast.engines.epto.timeline import PROCESSES, Timeline
from ordercast.engines.epto.types import Numbers

TOTALS = 5


class Health(NamedTuple):
    """How Cyclon's views are at one time, and what happened until then."""

    tick: int
    """Before the first round it is negative."""
    view_mean: float
    view_min: int
    dead_share: float
    """Of the entries in all views, those of processes that have left."""
    indegree_min: int
    indegree_max: int
    indegree_spread: float
    """In how many views the living are, and the standard deviation of that."""
    messages: int
    lost: int
    purged: int
    """Neighbours that were asked and did not answer in time."""
    ignored: int
    """Answers that came too late."""


class _Overlay(NamedTuple):
    """A run of Cyclon, ready to start."""

    rules: Rules
    nodes: Nodes
    mail: Mail


def cyclon_targets(
    setup: Setup,
    latencies: Latencies,
    line: Timeline,
    options: CyclonOptions,
    *,
    contacts: int = 3,
    drawn: bool = False,
    warmup_ticks: int = 0,
) -> Numbers:
    """[turn, place] Whom each turn of `line.slots` sends to: processes, -1 beyond what the view has.

    The period and the jitter of the options are in ticks.
    """
    overlay = _overlay(setup, latencies, line, options, contacts, drawn)
    targets = np.empty((line.slots.shape[0], setup.fanout), np.int32)
    _run(overlay, setup, line, warmup_ticks, 0, warmup_ticks + line.ticks, targets)
    return targets


def cyclon_health(
    setup: Setup,
    latencies: Latencies,
    line: Timeline,
    options: CyclonOptions,
    *,
    contacts: int = 3,
    drawn: bool = False,
    warmup_ticks: int = 0,
) -> list[Health]:
    """How the views are after each round's time, the warm-up included."""
    overlay = _overlay(setup, latencies, line, options, contacts, drawn)
    targets = np.empty((0, setup.fanout), np.int32)
    end = warmup_ticks + line.ticks
    found = []
    for start in range(0, end, setup.round_ticks):
        stop = min(start + setup.round_ticks, end)
        _run(overlay, setup, line, warmup_ticks, start, stop, targets)
        found.append(_health(overlay, stop - warmup_ticks))
    return found


def _overlay(
    setup: Setup, latencies: Latencies, line: Timeline, options: CyclonOptions, contacts: int, drawn: bool
) -> _Overlay:
    if contacts < 1:
        raise LocalError(f"cyclon: a process must know at least 1 contact when it starts, not {contacts}")
    rules = Rules(
        slot=line.slot,
        view_size=options.view,
        length=options.length,
        period=options.period_ns,
        jitter=options.jitter_ns,
        patience=options.patience,
        over_oldest=options.replaces == "oldest",
        seed=np.uint64(stream_of(setup.seed, PROCESSES)),
        loss=np.uint64(int(setup.loss * 2**64)),
        latency_seed=np.uint64(stream_of(setup.seed, LATENCY)),
        matrix=latencies.matrix,
        values=latencies.values,
    )
    nodes = _nodes(rules, setup.processes, min(contacts, setup.processes))
    mail = _mail(rules, setup, latencies.longest)
    begin_all(rules, nodes, drawn)
    return _Overlay(rules, nodes, mail)


def _nodes(rules: Rules, n: int, contacts: int) -> Nodes:
    """The first processes, before they begin."""
    known = np.full((n, contacts), NOBODY, np.int32)
    known[:] = np.arange(contacts, dtype=np.int32)
    for slot in range(contacts):
        known[slot, slot:] = [*range(slot + 1, contacts), NOBODY]
    places = (n, rules.patience)
    return Nodes(
        process=np.arange(n, dtype=np.int32),
        seed=np.zeros(n, np.uint64),
        rounds=np.zeros(n, np.int32),
        due=np.zeros(n, np.int32),
        shuffles=np.zeros(n, np.int32),
        answers=np.zeros(n, np.int32),
        size=np.zeros(n, np.int32),
        known=np.full((n, rules.view_size), NOBODY, np.int32),
        ages=np.zeros((n, rules.view_size), np.int32),
        contacts=known,
        asked_number=np.full(places, NOBODY, np.int32),
        asked_node=np.full(places, NOBODY, np.int32),
        asked_count=np.zeros(places, np.int32),
        asked_sent=np.empty((*places, rules.length), np.int32),
    )


def _mail(rules: Rules, setup: Setup, longest: int) -> Mail:
    """Room for all that can be under way at once; what is never used takes no memory.

    A slot sends no more requests in a time than there are shortest periods in it, one more, and one for
    each process that begins in it. Answers under way are to requests of the last two longest latencies.
    """
    shortest = rules.period - rules.jitter
    room = 0
    for time in (longest, 2 * longest):
        room += setup.processes * (time // shortest + 1) + setup.leavers * (time // setup.round_ticks + 1)
    following = np.arange(1, room + 1, dtype=np.int32)
    following[-1] = NOBODY
    return Mail(
        first=np.full(longest + 1, NOBODY, np.int32),
        last=np.full(longest + 1, NOBODY, np.int32),
        next=following,
        kind=np.empty(room, np.uint8),
        source=np.empty(room, np.int32),
        target=np.empty(room, np.int32),
        number=np.empty(room, np.int32),
        carried=np.empty(room, np.int32),
        nodes=np.empty((room, rules.length), np.int32),
        ages=np.empty((room, rules.length), np.int32),
        totals=np.zeros(TOTALS, np.int64),
    )


def _run(
    overlay: _Overlay, setup: Setup, line: Timeline, warmup: int, start: int, stop: int, targets: Numbers
) -> None:
    """All ticks from `start` up to but not `stop`, counted from the begin of the warm-up."""
    ticks(
        overlay.rules,
        overlay.nodes,
        overlay.mail,
        line.by_tick,
        line.slots,
        line.leavers,
        setup.round_ticks,
        warmup,
        start,
        stop,
        targets,
    )


def _health(overlay: _Overlay, tick: int) -> Health:
    rules, nodes, totals = overlay.rules, overlay.nodes, overlay.mail.totals
    filled = np.arange(rules.view_size) < nodes.size[:, None]
    known = nodes.known[filled]
    slots = rules.slot[known]
    alive = nodes.process[slots] == known
    indegrees = np.bincount(slots[alive], minlength=len(nodes.process))
    return Health(
        tick,
        float(nodes.size.mean()),
        int(nodes.size.min()),
        float(1 - alive.mean()) if alive.size else 0.0,
        int(indegrees.min()),
        int(indegrees.max()),
        float(indegrees.std()),
        *(int(totals[kind]) for kind in (SENT, LOST, PURGED, IGNORED)),
    )
