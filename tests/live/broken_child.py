"""Host processes of live scenarios in which receivers or sequencers are broken on purpose, by name."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from multiprocessing import forkserver
from multiprocessing.connection import Connection

import msgspec
import pytest

from ordercast.core import HostId, Plan
from ordercast.lab.trial import child, hosts
from ordercast.lab.trial.setting import Setting
from ordercast.scenario.spec import Scenario
from tests.sim.mutants_hydra import Hasty, changed, forgetful, merging

Break = Callable[[Plan], Plan]

BROKEN: dict[str, Break] = {
    "hasty": lambda plan: changed(plan, ("receiver", partial(merging, Hasty), None)),
    "forgetful": lambda plan: changed(plan, ("receiver", forgetful, 0)),
}
"""What is broken in the plan of a scenario of this name."""


def run_broken_child(setting: bytes, life: bytes, host: HostId, connection: Connection) -> None:
    """What `run_child` does, with the plan of the scenario broken as its name says."""
    scenario = msgspec.json.decode(setting, type=Setting).scenario
    with breaking(scenario.name):
        child.run_child(setting, life, host, connection)


@contextmanager
def breaking(name: str) -> Iterator[None]:
    """Let all scenarios have plans that are broken in this way."""
    plan = Scenario.plan
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Scenario, "plan", lambda self: BROKEN[name](plan(self)))
        patched.setattr(hosts, "run_child", run_broken_child)
        _stop_server()
        yield
    _stop_server()


def _stop_server() -> None:
    """Hosts are forked from a server that has read certain modules; the next one will read those it needs."""
    stop: Callable[[], None] = getattr(forkserver._forkserver, "_stop")  # noqa: B009 - no stub knows it
    stop()
