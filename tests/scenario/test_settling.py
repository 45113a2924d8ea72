"""How a run comes to rest, with time as an argument."""

from ordercast.core import Nanos
from ordercast.scenario.conditions import Conditions
from ordercast.scenario.settling import Settling, SettlingRun


def test_patience_counts_from_the_last_change() -> None:
    settling = Settling(100, patience=50)
    settling.see(110, "one")
    settling.see(140, "one")
    assert settling.quiet_at == 160
    assert not settling.quiet(159)
    assert settling.quiet(160)
    settling.see(160, "another")
    assert not settling.quiet(209)
    assert settling.quiet(210)


def test_without_a_look_patience_counts_from_the_start() -> None:
    assert not Settling(100, patience=50).quiet(149)
    assert Settling(100, patience=50).quiet(150)


def test_a_run_that_never_rests_is_over_at_its_limit() -> None:
    settling = Settling(0, patience=50, limit=1000)
    for now in range(0, 1001, 10):
        settling.see(now, now)
        assert not settling.quiet(now)
    assert not settling.over(1000)
    assert settling.over(1001)


class Script(SettlingRun):
    """A run in which deliveries come at given times, some only on a good network."""

    STEP = 10
    LINGER = 5
    LIMIT = 10_000

    def __init__(
        self, expected: int, *at: Nanos, held: int = 0, calm: bool = True, ends: bool = False
    ) -> None:
        self._time = 0
        self._expected = expected
        self._at = at
        self._held = held
        self._calm = calm
        self._ends = ends

    @property
    def now(self) -> Nanos:
        return self._time

    @property
    def arrived(self) -> int:
        return sum(at <= self._time for at in self._at) + (self._held if self._calm else 0)

    @property
    def complete(self) -> bool:
        return self.arrived >= self._expected

    @property
    def calm(self) -> bool:
        return self._calm

    @property
    def stuck(self) -> bool:
        return self._ends and self._time >= max(self._at, default=0)

    def set_conditions(self, conditions: Conditions) -> None:
        self._calm = conditions.calm

    def go_on(self, until: Nanos) -> None:
        assert until > self._time
        self._time = until


def test_a_run_ends_a_little_after_all_has_come() -> None:
    run = Script(2, 10, 55)
    assert not run.settle(100)
    assert run.complete
    assert run.now == 60 + Script.LINGER


def test_what_is_missing_is_waited_for_as_long_as_the_patience_lasts() -> None:
    run = Script(3, 10, 50)
    assert not run.settle(100)
    assert not run.complete
    assert run.now == 50 + 100


def test_patience_is_shorter_than_a_step_if_it_is_said_so() -> None:
    run = Script(1)
    assert not run.settle(3)
    assert run.now == 3


def test_a_bad_network_becomes_good_before_anything_counts_as_lost() -> None:
    run = Script(3, 10, 50, held=1, calm=False)
    assert run.settle(100)
    assert run.complete
    assert run.calm
    assert run.now == 150 + Script.LINGER


def test_healing_that_brings_nothing_is_no_healing() -> None:
    run = Script(3, 10, 50, calm=False)
    assert not run.settle(100)
    assert not run.complete
    assert run.now == 150 + 100


def test_a_run_in_which_nothing_can_happen_is_not_waited_for() -> None:
    run = Script(3, 10, ends=True)
    assert not run.settle(100)
    assert run.now == 10


def test_a_run_that_gets_on_for_ever_is_given_up() -> None:
    run = Script(2000, *range(10, 20_000, 10))
    assert not run.settle(100)
    assert Script.LIMIT < run.now <= Script.LIMIT + Script.STEP
