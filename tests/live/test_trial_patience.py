"""How long a trial waits in silence: on a busy machine silence means less."""

from ordercast.core import MILLISECOND, SECOND
from ordercast.lab.trial.messages import Report
from ordercast.lab.trial.run import LATE_STEPS, patience_of
from ordercast.scenario.spec import Scenario

SCENARIO = Scenario(protocol="hydra", settle_ms=1_500)


def test_hosts_in_time_need_the_settling_time_only() -> None:
    assert patience_of(SCENARIO, []) == 1_500 * MILLISECOND
    assert patience_of(SCENARIO, [Report(), Report(late_ns=0)]) == 1_500 * MILLISECOND


def test_the_latest_host_says_how_busy_the_machine_is() -> None:
    reports = [Report(late_ns=10), Report(late_ns=SECOND), Report()]
    assert patience_of(SCENARIO, reports) == 1_500 * MILLISECOND + LATE_STEPS * SECOND
