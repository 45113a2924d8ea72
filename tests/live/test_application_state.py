"""Programs with a dictionary as their state: one that joins late gets it, and goes on with the others."""

import asyncio
import json
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from ordercast.core import Joined, LocalError, State, StateWanted
from ordercast.judge import audit
from ordercast.lab.trial.run import run_live
from ordercast.net.api.group import Group
from ordercast.net.api.join import join
from ordercast.net.api.received import Received
from ordercast.net.host.loop import run
from ordercast.scenario.changes import Join, Leave
from ordercast.scenario.faults import Crash, Restart
from ordercast.scenario.spec import Scenario, WorkloadSpec
from ordercast.trace import Kind, events_of
from tests.live.cluster_files import write_cluster
from tests.live.processes import PATIENCE_S

HOSTS = (0, 1, 2, 3)
LOAD = 300
"""How many entries each of three programs sets; they do so while the fourth one comes."""


def cluster(folder: Path, options: str, protocol: str = "token_site") -> Path:
    """Three members of a group, and one that is in no group at the start; all send."""
    top = "senders = 4\ncolocated = true\njoiners = 1\ntrace = false"
    return write_cluster(folder, protocol=protocol, receivers=3, top=top, options=options, hosts=HOSTS)


class Dictionary:
    """A program whose state is a dictionary, which depends on the order of the entries that are set."""

    def __init__(self, group: Group) -> None:
        self.group = group
        self.entries: dict[str, str] = {}
        self.told: list[type] = []
        self.task = asyncio.create_task(self._serve())

    async def _serve(self) -> None:
        async for delivery in self.group:
            self.told.append(type(delivery))
            match delivery:
                case Received():
                    key, _, value = delivery.payload.decode().partition("=")
                    self.entries[key] = value
                case StateWanted():
                    await self.group.give_state(delivery, json.dumps(self.entries).encode())
                    with pytest.raises(LocalError, match="has given it already"):
                        await self.group.give_state(delivery, b"again")
                case State():
                    self.entries = json.loads(delivery.data)

    async def until(self, key: str) -> None:
        """Wait for an entry."""
        async with asyncio.timeout(PATIENCE_S):
            while key not in self.entries:
                await asyncio.sleep(0.01)
                if self.task.done():
                    self.task.result()


async def load(program: Dictionary, number: int) -> None:
    """Set entries, the same ones as the others, to other values."""
    for turn in range(LOAD):
        await program.group.send(f"{turn % 40}={number}/{turn}".encode())
        await asyncio.sleep(0.002)


def test_a_program_that_joins_late_has_the_dictionary_of_the_others(tmp_path: Path) -> None:
    config = cluster(tmp_path, "application_state = true")

    async def act() -> None:
        async with AsyncExitStack() as exits:
            groups = [await exits.enter_async_context(join(config, "orders", host=h)) for h in HOSTS[:3]]
            programs = [Dictionary(group) for group in groups]
            await programs[0].group.send(b"first=1")
            await asyncio.gather(*(program.until("first") for program in programs))
            loads = [asyncio.create_task(load(one, number)) for number, one in enumerate(programs)]
            await asyncio.sleep(0.2)
            late = Dictionary(await exits.enter_async_context(join(config, "orders")))
            await asyncio.gather(*loads)
            await programs[1].group.send(b"last=1")
            await asyncio.gather(*(program.until("last") for program in (*programs, late)))
            assert late.told[:2] == [Joined, State]
            assert Received in late.told and late.told.count(State) == 1
            assert late.entries["first"] == "1" and len(late.entries) == 42
            assert all(program.entries == late.entries for program in programs)

    run(act())


def test_who_gives_a_state_that_nobody_wants_is_told_so(tmp_path: Path) -> None:
    config = cluster(tmp_path, "")

    async def act() -> None:
        async with join(config, "orders", host=0) as group:
            with pytest.raises(LocalError, match="the option application_state is off"):
                await group.give_state(StateWanted(0, 1, (3,)), b"state")

    run(act())


@pytest.mark.deep
@pytest.mark.parametrize("protocol", ["view_synchronous", "hybrid"])
def test_states_are_brought_in_a_live_scenario(protocol: str) -> None:
    scenario = Scenario(
        protocol=protocol,
        receivers=3,
        joiners=1,
        live_options=True,
        options={"application_state": True},
        workload=WorkloadSpec(messages=400, rate_per_s=60),
        fault=(Crash(at_ms=1500, host=1), Restart(at_ms=3500, host=1)),
        join=(Join(at_ms=300, node=3), Join(at_ms=5000, node=3)),
        leave=(Leave(at_ms=4000, node=3),),
        settle_ms=3000,
    )
    ended, _ = run_live(scenario)
    assert ended.violations == [] == audit(ended.description, ended.table).violations
    assert ended.account.complaints == ()
    states = [event for event in events_of(ended.table) if event.kind is Kind.STATE]
    assert {event.node for event in states} == {1, 3}
    assert all(event.peer is not None for event in states)
