"""Programs that run a replica beside their client: the file, calls, what is left when a program ends."""

import asyncio
from pathlib import Path

import pytest

import ordercast
from ordercast.catalogue import broken_protocols, find_protocol, protocol_names
from ordercast.cli import run as run_command
from ordercast.core import Consistency, LocalError
from ordercast.lab.bench.service_run import run_service_bench
from ordercast.lab.bench.service_spec import ServiceBenchSpec
from ordercast.net.cluster.file import load_cluster
from ordercast.net.cluster.key_file import create_keys
from ordercast.net.cluster.new_cluster import NewCluster
from ordercast.net.host.loop import run
from ordercast.services import find_service
from tests.live.cluster_files import free_port_range
from tests.live.processes import PATIENCE_S
from tests.live.serving import STORE, Store, replicas_of

SHARDED = (Consistency.SERIALIZABLE, Consistency.STRICT_SERIALIZABLE)
SERVING = [
    name
    for name in protocol_names()
    if name not in broken_protocols()
    and find_protocol(name).serves
    and find_protocol(name).guarantees.consistency not in SHARDED
]


def embedded(folder: Path, protocol: str, clients: int = 0, **options: object) -> Path:
    """The file of a cluster whose clients are beside replicas."""
    (folder / "store.py").write_text(STORE)
    new = NewCluster(
        protocol=protocol,
        senders=clients,
        options=options,
        port=free_port_range(12),
        service=find_service("store:Store", folder),
        embedded=True,
    )
    create_keys(folder / "cluster.key")
    file = folder / "cluster.toml"
    file.write_text(new.text())
    return file


@pytest.mark.parametrize("protocol", SERVING)
def test_a_program_runs_a_replica_and_calls(tmp_path: Path, protocol: str) -> None:
    file = embedded(tmp_path, protocol)
    cluster = load_cluster(file)
    assert cluster.colocated and cluster.senders == 1
    plan = cluster.plan()
    (host,) = {plan.nodes[node].host for node in (plan.groups[0][0], *plan.senders)}
    assert not cluster.host(host).start and cluster.host(host + 1).start

    async def use() -> None:
        program = ordercast.connect(file, Store)
        async with asyncio.timeout(PATIENCE_S), replicas_of(file), program as store:
            await store.put("a", "5")
            assert await store.take("a", 2) == 3
            assert await asyncio.gather(*(store.get("a") for _ in range(50))) == ["3"] * 50

    run(use())


def test_what_a_program_wrote_outlives_it_and_its_replica(tmp_path: Path) -> None:
    """A majority of the replicas runs elsewhere, and the next program's replica gets the state from them."""
    file = embedded(tmp_path, "hydra_paxos")

    async def use() -> None:
        async with asyncio.timeout(PATIENCE_S), replicas_of(file):
            for turn in range(3):
                async with ordercast.connect(file, Store) as store:
                    assert await store.get("a") == (str(turn) if turn else None)
                    await store.put("a", str(turn + 1))

    run(use())


def test_a_second_program_is_told_that_the_replica_runs(tmp_path: Path) -> None:
    file = embedded(tmp_path, "unreplicated")

    async def use() -> None:
        async with asyncio.timeout(PATIENCE_S), replicas_of(file), ordercast.connect(file, Store):
            with pytest.raises(LocalError, match="no host with a client is free"):
                async with ordercast.connect(file, Store):
                    pass

    run(use())


def test_the_benchmark_can_embed_a_replica(tmp_path: Path) -> None:
    options: dict[str, object] = {"hydra": {"compact": True}}
    spec = ServiceBenchSpec(
        protocol="hydra_paxos", tasks=8, seconds=0.5, warmup_s=0.2, options=options, embedded=True
    )
    result = run_service_bench(spec, tmp_path / "cluster")
    assert result.violations == [] and result.checked == result.answered > 0
    assert any("client" in role and "replica" in role for role in result.cpu_us_per_operation)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["cluster", "init", "--embedded"], "only clients of a service can be embedded"),
        (["bench", "--embedded", "--seconds", "0.1"], "--embedded is only possible with --service"),
    ],
)
def test_only_clients_of_services_are_embedded(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_command(words) == 2
    assert said in capsys.readouterr().err


def test_it_is_told_when_programs_run_too_many_replicas(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    init = ["cluster", "init", "--service", "kv", "--protocol", "hydra_paxos", "--embedded"]
    assert run_command(init) == 0
    assert "note:" not in capsys.readouterr().err
    assert run_command([*init, "--force", "--clients", "2"]) == 0
    assert "while your programs do not run, half or more" in capsys.readouterr().err
