"""Cyclon as arrays makes the very choices that Cyclon makes."""

from collections.abc import Sequence

import numpy as np
import pytest
from msgspec.structs import replace

from ordercast.components.sampling import CONTACTS, Cyclon, CyclonOptions, choose, draw, stream
from ordercast.core import LocalError
from ordercast.engines.epto.cyclon import cyclon_health, cyclon_targets
from ordercast.engines.epto.cyclon_steps import ANSWER_LOSS, REQUEST_LOSS
from ordercast.engines.epto.network import LATENCY, Latencies, latency_of
from ordercast.engines.epto.setup import Setup
from ordercast.engines.epto.timeline import PROCESSES, Timeline, timeline
from tests.sampling.driver import Fate, Overlay

ROUNDS = 25
ROUND_TICKS = 40
OPTIONS = CyclonOptions(view=12, length=5, period_ns=ROUND_TICKS, jitter_ns=2, patience=3)


def random_latencies(seed: int, measured: int) -> Latencies:
    """From one tick to far more than a period; a few pairs never hear each other."""
    rng = np.random.default_rng(seed)
    matrix = rng.integers(1, 90, (measured, measured)).astype(np.int16)
    matrix[rng.random((measured, measured)) < 0.05] = -1
    return Latencies(matrix, rng.integers(1, 90, 300).astype(np.int32))


class Reference:
    """A run of the engine with `ordercast.components.sampling.Cyclon` in each process."""

    def __init__(
        self,
        setup: Setup,
        latencies: Latencies,
        line: Timeline,
        options: CyclonOptions,
        contacts: int,
        warmup: int,
        drawn: bool = False,
    ) -> None:
        self.setup, self.latencies, self.line, self.contacts, self.warmup = (
            setup,
            latencies,
            line,
            contacts,
            warmup,
        )
        nodes = range(len(line.slot))
        self.overlay = Overlay(options, self.fate(), nodes, lambda process: int(line.slot[process]))
        self.ever: list[Cyclon] = []
        self.living = list(range(setup.processes))
        for process in self.living:
            self.join(process, self.meet(process, process) if drawn else range(contacts))

    def seed(self, process: int) -> int:
        return draw(stream(self.setup.seed, PROCESSES), process, 0)

    def fate(self) -> Fate:
        latency_seed = np.uint64(stream(self.setup.seed, LATENCY))
        lost_below = int(self.setup.loss * 2**64)

        def fate(source: int, target: int, asks: bool, number: int) -> int | None:
            losses = stream(self.seed(source), REQUEST_LOSS if asks else ANSWER_LOSS)
            if draw(losses, number, 0) < lost_below:
                return None
            pair = self.line.slot[source], self.line.slot[target]
            latency = latency_of(self.latencies.matrix, self.latencies.values, latency_seed, *pair)
            return int(latency) if latency > 0 else None

        return fate

    def join(self, process: int, contacts: Sequence[int]) -> None:
        self.overlay.join(process, self.seed(process), contacts)
        self.ever.append(self.overlay.alive[process])

    def churn(self, step: int) -> None:
        first = self.setup.processes + step * self.line.leavers.shape[1]
        joining = [(first + place, int(slot)) for place, slot in enumerate(self.line.leavers[step])]
        for process, slot in joining:
            self.overlay.crash(self.living[slot])
            self.living[slot] = process
        for process, slot in joining:
            self.join(process, self.meet(process, slot))

    def meet(self, process: int, slot: int) -> list[int]:
        """Some that are there now."""
        others = self.living[:slot] + self.living[slot + 1 :]
        places = choose(stream(self.seed(process), CONTACTS), 0, self.contacts, len(others))
        return [others[place] for place in places]

    def targets(self) -> list[list[int]]:
        found = []
        rounds = dict.fromkeys(range(len(self.line.slot)), 0)
        self.overlay.run_until(self.warmup)
        for tick in range(self.line.ticks):
            step, rest = divmod(tick, self.setup.round_ticks)
            if not rest and 0 < step <= len(self.line.leavers):
                self.churn(step - 1)
            self.overlay.run_until(self.warmup + tick + 1)
            for slot in self.line.slots[self.line.by_tick[tick] : self.line.by_tick[tick + 1]]:
                process = self.living[slot]
                rounds[process] += 1
                found.append(self.overlay.alive[process].sample(rounds[process], self.setup.fanout))
        return found


CALM = Setup(processes=50, fanout=7, ttl=10, round_ticks=ROUND_TICKS)
CASES = {
    "calm": CALM,
    "loss": replace(CALM, loss=0.2),
    "churn": replace(CALM, churn=0.06),
    "loss and churn": replace(CALM, loss=0.1, churn=0.1),
    "in step": replace(CALM, in_step=True, drift=0.0, churn=0.04),
    "together": replace(CALM, in_step=True, churn=0.04),
}


@pytest.mark.parametrize("measured", [0, 20, 50], ids="{} measured".format)
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_arrays_make_the_choices_that_cyclon_makes(seed: int, case: str, measured: int) -> None:
    setup = replace(CASES[case], seed=seed)
    latencies = random_latencies(seed, measured)
    line = timeline(setup, ROUNDS * ROUND_TICKS)
    warmup = 100 * (seed % 2)
    reference = Reference(setup, latencies, line, OPTIONS, contacts=2, warmup=warmup)
    expected = reference.targets()
    args = (setup, latencies, line, OPTIONS)
    found = cyclon_targets(*args, contacts=2, warmup_ticks=warmup)
    assert found.shape == (len(line.slots), setup.fanout)
    assert [[target for target in turn if target >= 0] for turn in found.tolist()] == expected
    assert all(sorted(turn >= 0, reverse=True) == list(turn >= 0) for turn in found)

    health = cyclon_health(*args, contacts=2, warmup_ticks=warmup)[-1]
    assert health.messages == reference.overlay.sent
    assert health.purged == sum(sampler.purged for sampler in reference.ever)
    assert health.ignored == sum(sampler.ignored for sampler in reference.ever)
    views = reference.overlay.views()
    assert health.view_mean == pytest.approx(sum(map(len, views.values())) / 50)
    entries = [node for view in views.values() for node in view]
    assert health.dead_share == pytest.approx(sum(node not in views for node in entries) / len(entries))


def test_a_run_in_which_nobody_knows_anybody_has_no_targets() -> None:
    setup = Setup(processes=1, fanout=3, ttl=10, round_ticks=ROUND_TICKS)
    line = timeline(setup, 10 * ROUND_TICKS)
    assert (cyclon_targets(setup, Latencies.constant(5), line, OPTIONS) == -1).all()
    assert cyclon_health(setup, Latencies.constant(5), line, OPTIONS)[-1].messages == 0


def test_two_runs_are_the_same_and_seeds_differ() -> None:
    def targets(seed: int) -> list[list[int]]:
        setup = replace(CALM, seed=seed)
        line = timeline(CALM, 10 * ROUND_TICKS)
        return [list(turn) for turn in cyclon_targets(setup, Latencies.constant(5), line, OPTIONS)]

    assert targets(1) == targets(1) != targets(2)


@pytest.mark.parametrize("contacts", [1, 3, 60])
@pytest.mark.parametrize(("view", "length"), [(1, 1), (2, 2), (4, 1)])
def test_small_views_and_any_number_of_contacts_agree_too(view: int, length: int, contacts: int) -> None:
    setup = replace(CALM, churn=0.06, loss=0.1, seed=7)
    options = CyclonOptions(view=view, length=length, period_ns=ROUND_TICKS, jitter_ns=0, patience=1)
    latencies = random_latencies(7, 20)
    line = timeline(setup, ROUNDS * ROUND_TICKS)
    expected = Reference(setup, latencies, line, options, contacts, warmup=0).targets()
    found = cyclon_targets(setup, latencies, line, options, contacts=contacts)
    assert [[target for target in turn if target >= 0] for turn in found.tolist()] == expected


@pytest.mark.parametrize("case", CASES)
def test_views_whose_oldest_entries_make_room_agree_too(case: str) -> None:
    """As in the authors' simulator, where views begin with processes drawn from all."""
    setup = replace(CASES[case], seed=5)
    options = replace(OPTIONS, replaces="oldest")
    latencies = random_latencies(5, 20)
    line = timeline(setup, ROUNDS * ROUND_TICKS)
    reference = Reference(setup, latencies, line, options, contacts=12, warmup=0, drawn=True)
    expected = reference.targets()
    found = cyclon_targets(setup, latencies, line, options, contacts=12, drawn=True)
    assert [[target for target in turn if target >= 0] for turn in found.tolist()] == expected
    swapped = cyclon_targets(setup, latencies, line, OPTIONS, contacts=12, drawn=True)
    assert not np.array_equal(found, swapped)


def test_processes_without_contacts_are_refused() -> None:
    line = timeline(CALM, 10 * ROUND_TICKS)
    with pytest.raises(LocalError, match="at least 1 contact when it starts, not 0"):
        cyclon_targets(CALM, Latencies.constant(5), line, OPTIONS, contacts=0)


def test_with_churn_the_dead_share_settles_and_the_living_are_known() -> None:
    """An entry lives for up to 20 shuffles, a shuffle a round: on average its node was seen 10 rounds ago."""
    setup = Setup(processes=1000, fanout=7, ttl=10, churn=0.01, seed=4)
    options = CyclonOptions(view=20, length=8, period_ns=125, jitter_ns=1)
    line = timeline(setup, 100 * 125)
    health = cyclon_health(setup, Latencies.constant(20), line, options, warmup_ticks=40 * 125)
    before = [each for each in health if -10 * 125 < each.tick <= 125]
    settled = [each for each in health if each.tick > 50 * 125]
    assert all(each.dead_share == 0 for each in before)
    assert all(0.07 < each.dead_share < 0.13 for each in settled)
    assert all(each.view_mean > 0.95 * 20 for each in settled)
    assert all(each.indegree_spread < 5 for each in before)
