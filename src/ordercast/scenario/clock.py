"""A host's clock: it has a skew, it drifts, it may be stepped, but it never runs backwards."""

from random import Random

from ordercast.core import MICROSECOND, HostId, LocalError, Nanos
from ordercast.scenario.spec import Scenario

PPB = 1_000_000_000


class Clock:
    """Local time as a function of true time.

    A step backwards makes the reading stand still until it has caught up, as clock synchronisation
    daemons do it: Hydra's safety rests on that (section 4.3.1).
    """

    __slots__ = ("_anchor_local", "_anchor_true", "_highest", "_rate_ppb")

    def __init__(self, skew_ns: Nanos = 0, drift_ppb: int = 0) -> None:
        if skew_ns < 0:
            raise LocalError(f"the skew of a clock must be at least 0 ns, not {skew_ns} ns")
        self._anchor_true: Nanos = 0
        self._anchor_local: Nanos = skew_ns
        self._rate_ppb = 0
        self._highest = skew_ns
        self.set_drift(0, drift_ppb)

    def read(self, true_time: Nanos) -> Nanos:
        """The reading at a true time, which must not be before that of the last call."""
        elapsed = true_time - self._anchor_true
        local = self._anchor_local + elapsed + elapsed * self._rate_ppb // PPB
        if local > self._highest:
            self._highest = local
        return self._highest

    def true_duration(self, local_duration: Nanos) -> Nanos:
        """The true duration of a timer for a local duration, rounded up, so that no timer is early."""
        return -(-local_duration * PPB // (PPB + self._rate_ppb))

    def set_drift(self, true_time: Nanos, drift_ppb: int) -> None:
        """From now on, gain (or lose) this many nanoseconds per second."""
        if not -PPB // 2 <= drift_ppb <= PPB:
            raise LocalError(f"drift must be from {-PPB // 2} to {PPB} parts per billion, not {drift_ppb}")
        elapsed = true_time - self._anchor_true
        self._anchor_local += elapsed + elapsed * self._rate_ppb // PPB
        self._anchor_true = true_time
        self._rate_ppb = drift_ppb

    def hold(self, reading: Nanos) -> None:
        """From now on, never read less than this."""
        self._highest = max(self._highest, reading)

    def step(self, by_ns: Nanos) -> None:
        """Set the clock forward or back. After a step back, it stands still until it has caught up."""
        self._anchor_local += by_ns


def clocks_of(scenario: Scenario, hosts: list[HostId]) -> dict[HostId, Clock]:
    """The clocks with skew and drift, drawn from the seed; none if all clocks are right."""
    spec = scenario.clocks
    if not spec.skew_us and not spec.drift_ppm:
        return {}
    rng = Random(f"{scenario.seed}/clocks")
    return {
        host: Clock(
            round(rng.uniform(0, spec.skew_us) * MICROSECOND),
            round(rng.uniform(-spec.drift_ppm, spec.drift_ppm) * 1000),
        )
        for host in hosts
    }
