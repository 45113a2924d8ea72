"""The comparison of services: its load finds stores that lose writes, and its report adds up."""

import asyncio
from pathlib import Path
from random import Random

import pytest

from benchmarks.services.__main__ import MANY, ONE, contenders, report
from benchmarks.services.bare_chain import BareChain
from benchmarks.services.contender import Contender, Figures, MeasureError
from benchmarks.services.load import Connection, drive
from benchmarks.services.nopaxos_cpp import NopaxosCpp
from benchmarks.services.redis_wait import RedisWait
from ordercast.cli import run
from ordercast.core import LocalError
from ordercast.lab.bench.service_member import DRAWN, draw_calls
from ordercast.services import Operations, workload_of


class Memory(Connection):
    """A store in this process; it may forget the writes of a task."""

    def __init__(self, data: dict[str, str], *, forgets: bool = False) -> None:
        self._data = data
        self._forgets = forgets

    async def put(self, key: str, value: str) -> None:
        await asyncio.sleep(0.001)
        if not self._forgets:
            self._data[key] = value

    async def get(self, key: str) -> str | None:
        return self._data.get(key)


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.services.load.WARM_UP_S", 0.05)


def test_tasks_write_and_nothing_is_wrong_with_a_good_store() -> None:
    data: dict[str, str] = {}

    async def connect() -> Connection:
        return Memory(data)

    found = asyncio.run(drive(connect, 4, 0.3))
    assert found.violations == 0 and len(data) == 4
    assert 0 < found.operations_per_s < 4000 and 1000 <= found.p50_us <= found.p99_us


def test_a_store_that_forgets_writes_is_found_out() -> None:
    data: dict[str, str] = {}
    made: list[Connection] = []

    async def connect() -> Connection:
        made.append(Memory(data, forgets=len(made) == 2))
        return made[-1]

    assert asyncio.run(drive(connect, 4, 0.1)).violations == 1


def test_a_store_that_hangs_up_is_no_measurement() -> None:
    class Gone(Memory):
        async def put(self, key: str, value: str) -> None:
            raise ConnectionResetError("gone")

    async def connect() -> Connection:
        return Gone({})

    with pytest.raises(MeasureError, match="ConnectionResetError: gone"):
        asyncio.run(drive(connect, 1, 0.1))


def test_the_report_has_medians_ratios_and_who_is_absent() -> None:
    def rounds(*rates: float) -> list[Figures]:
        return [Figures(rate, 1.0, 2.0, 0) for rate in rates]

    measured = {
        "hydra_paxos": {MANY: rounds(30, 10, 20), ONE: rounds(6)},
        "other": {MANY: rounds(10, 10, 10), ONE: []},
    }
    measured["hydra_paxos_durable"] = {MANY: rounds(5), ONE: []}
    found = report(measured, {"etcd_disk": "no etcd"})
    assert found["ratios"] == {
        "hydra_paxos_to": {"other": 2.0, "hydra_paxos_durable": 4.0},
        "hydra_paxos_to_with_one_task": {},
        "hydra_paxos_durable_to": {"hydra_paxos": 0.25, "other": 0.5},
        "hydra_paxos_compact_to": {},
        "hydra_paxos_apart_to": {},
    }
    assert found["absent"] == {"etcd_disk": "no etcd"}
    contender = found["contenders"]["hydra_paxos"]  # type: ignore[index]
    assert (contender["operations_per_s"], contender["one_task"]["operations_per_s"]) == (20, 6)
    assert found["contenders"]["other"]["one_task"] is None  # type: ignore[index]


def test_all_that_serve_take_part() -> None:
    names = [one.name for one in contenders()]
    ours = {
        "unreplicated",
        "active",
        "hydra_paxos",
        "hydra_paxos_durable",
        "hydra_paxos_compact",
        "hydra_paxos_apart",
        "nopaxos",
        "multi_paxos",
        "fast_paxos",
        "llft",
    }
    others = {"etcd_disk", "etcd_memory", "redis_wait", "pysyncobj", "nopaxos_cpp", "bare_chain"}
    assert ours | others == set(names)
    assert len(names) == len(set(names))


@pytest.mark.parametrize("contender", [RedisWait(), BareChain()], ids=lambda one: one.name)
def test_a_peer_is_measured_if_it_is_here(tmp_path: Path, contender: Contender) -> None:
    if missing := contender.missing():
        pytest.skip(missing)
    found = contender.measure(4, 0.3, tmp_path)
    assert found.operations_per_s > 0 and found.violations == 0


CLIENT = """#!/bin/sh
while getopts c:m:t:n:w:l: word; do [ $word = l ] && latencies=$OPTARG; done
echo "Completed 100 requests in 0.50 seconds"
echo "Completed 100 requests in 0.25 seconds"
printf '\\350\\003\\000\\000\\000\\000\\000\\000\\320\\007\\000\\000\\000\\000\\000\\000' > $latencies.raw
"""


def test_the_client_of_another_nopaxos_is_asked_if_there_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    contender = NopaxosCpp()
    monkeypatch.delenv("NOPAXOS_HOME", raising=False)
    assert "no NOPAXOS_HOME" in contender.missing()
    client, config = tmp_path / "bench" / "client", tmp_path / "group.conf"
    client.parent.mkdir()
    client.write_text(CLIENT)
    client.chmod(0o755)
    monkeypatch.setenv("NOPAXOS_HOME", str(tmp_path))
    assert "no NOPAXOS_CONFIG" in contender.missing()
    config.touch()
    monkeypatch.setenv("NOPAXOS_CONFIG", str(config))
    assert contender.missing() == ""
    found = contender.measure(2, 0.1, tmp_path)
    assert (found.operations_per_s, found.p50_us) == (600, 1.5)
    client.write_text("#!/bin/sh\nexit 1\n")
    with pytest.raises(MeasureError, match="the client of NOPaxos: "):
        contender.measure(2, 0.1, tmp_path)


def test_the_command_measures_a_service(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["bench", "--service", "counter", "--clients", "4", "--seconds", "0.5", "--reads", "0.5"]) == 0
    assert "counter on unreplicated, 4 tasks" in capsys.readouterr().out
    assert run(["bench", "--service", "kv", "--rate", "10"]) == 2
    capsys.readouterr()
    for words, told in (
        (["--service", "kv", "--protocol", "hydra"], "hydra orders messages"),
        (["--service", "nobody"], "no service 'nobody'"),
        (["--service", "kv", "--clients", "0"], "Invalid value for '--clients'"),
    ):
        assert run(["bench", *words]) == 2
        said = capsys.readouterr().err
        assert told in said and said.count("\n") == 1, "one line"


def test_a_measurement_of_one_operation_calls_no_other() -> None:
    operations = Operations(workload_of("kv"), 0.0, 64)
    drawn = draw_calls(operations, Random(1), "put")
    assert len(drawn) == DRAWN
    assert {name for name, _ in drawn} == {"put"}
    with pytest.raises(LocalError, match="hardly ever draws an operation 'get'"):
        draw_calls(operations, Random(1), "get")
