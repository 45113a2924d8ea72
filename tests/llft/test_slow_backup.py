"""A backup that is slow for ten minutes: buffers stay bounded, and the group waits for it or removes it."""

from __future__ import annotations

import pytest

from ordercast.core import MILLISECOND, SECOND, Nanos, NodeId, ServiceType
from ordercast.replication.llft.receiver import GroupReceiver
from ordercast.replication.llft.replica import Replica
from ordercast.scenario.conditions import Conditions
from ordercast.scenario.spec import Scenario
from ordercast.services.built_in import Counter
from ordercast.sim.latency import Uniform
from ordercast.sim.network import LatencyNetwork
from ordercast.sim.world import World

ADD = ServiceType.of(Counter).find("add")
WINDOW, BEHIND = 16, 32
CALLS = 8
SLOW, CLIENT = 2, 3


class SlowWorld(World):
    """Three replicas, of which the last stands still nearly all the time, and a client that calls often."""

    def __init__(self, pause_ms: int, **options: object) -> None:
        common = {"window": WINDOW, "behind_max": BEHIND, "calls": {"window": CALLS}}
        scenario = Scenario(
            protocol="llft", receivers=3, senders=1, service="counter", options={**common, **options}
        )
        super().__init__(
            scenario.plan(),
            1,
            lambda scheduler, rng: LatencyNetwork(
                scheduler, rng, Conditions(loss=0.01), Uniform(20_000, 200_000)
            ),
        )
        self._pause_ms = pause_ms
        self.kept = 0
        """The most messages that a replica kept at a time."""
        self.run(0)

    def replica(self, node: NodeId) -> Replica:
        process = self.envs[node].process
        assert isinstance(process, GroupReceiver) and process.replica is not None
        return process.replica

    def live(self, seconds: int) -> None:
        """Call 50 times a second, and look at the buffers each time."""
        end: Nanos = self.now + seconds * SECOND
        while self.now < end:
            self.submit(CLIENT, (0,), ADD.pack((1,), {}), None)
            self.pause(SLOW, self._pause_ms * MILLISECOND)
            self.run(self.now + 20 * MILLISECOND)
            told = [self.replica(node).explain().state["messages kept"] for node in range(3)]
            self.kept = max(self.kept, *(int(one) for one in told))

    def quiet(self) -> None:
        self.run(self.now + 2 * SECOND)


def slow_run(seconds: int) -> None:
    world = SlowWorld(15)
    world.live(seconds)
    assert world.replica(0).leads and world.replica(0).membership.members == (0, 1, SLOW)
    # In each direction: what is under way, and what one member still lacks.
    assert 0 < world.kept <= 2 * (4 * WINDOW + BEHIND)
    world.quiet()
    places = {world.replica(node).performer.place for node in range(3)}
    assert places == {50 * seconds}
    assert [world.replica(node).explain().state["messages kept"] for node in range(3)] == [0, 0, 0]
    assert world.replica(0).log.end - world.replica(0).log.after <= 2 * BEHIND + 1024


def test_buffers_stay_bounded_while_a_backup_is_slow() -> None:
    slow_run(10)


@pytest.mark.deep
def test_buffers_stay_bounded_for_ten_minutes() -> None:
    slow_run(600)


@pytest.mark.parametrize("choice", ["wait", "remove"])
def test_a_backup_that_holds_up_the_group(choice: str) -> None:
    """It answers heartbeats in time, so that it is not suspected, but performs nothing in between."""
    world = SlowWorld(0, slow_backup=choice, behind_max=2)
    slow = world.replica(SLOW)
    slow.follow = lambda: None  # type: ignore[method-assign]
    world.live(1)
    primary = world.replica(0)
    if choice == "wait":
        waits = primary.explain().waits
        assert any(wait.blocker == "backups that are behind" and SLOW in wait.on for wait in waits)
        assert primary.performer.place == 2
    else:
        assert SLOW not in primary.membership.members, "it came back as another member"
        assert slow.why_outside == "the primary has removed it"
        assert primary.performer.place > 25
