"""EpTO under the commands of a cluster, with Cyclon; and gossip that no dead peer can hold up."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ordercast.catalogue import find_protocol
from ordercast.core import Deployment, NodeId, Plan
from ordercast.net.cluster.cluster import Cluster
from ordercast.net.cluster.file import load_cluster
from ordercast.net.cluster.supervisor_client import is_supervised, report
from ordercast.net.tools.client import ControlClient
from ordercast.trace import Kind, events_of, find_runs
from tests.live.cluster_files import free_port_range, write_cluster
from tests.live.commands import Said, ended
from tests.live.live_lab import WINDOW, Lab, lab, run
from tests.live.processes import PATIENCE_S, alive, until
from tests.live.wires import until as until_in_loop

PEERS = 5
OPTIONS = {"round_ns": 100_000_000, "ttl": 180, "fanout": 3, "sampling": '"cyclon"', "contacts": 1}
"""An event lives for about five seconds. A peer that a busy machine holds up for longer would lose it."""


@contextmanager
def cluster_of(folder: Path) -> Iterator[Cluster]:
    """Peers that find each other by Cyclon, and leave nothing behind."""
    path = write_cluster(
        folder,
        protocol="epto",
        receivers=PEERS,
        top=f"senders = {PEERS}\ncolocated = true",
        options="\n".join(f"{name} = {value}" for name, value in OPTIONS.items()),
        hosts=tuple(range(PEERS)),
    )
    with ended(load_cluster(path)) as cluster:
        yield cluster


def state(cluster: Cluster, node: NodeId) -> dict[str, str | int]:
    """What a peer says of itself."""
    with ControlClient(node, cluster.socket_path(node), PATIENCE_S) as client:
        return client.explain().nodes[node].state


def known(cluster: Cluster, node: NodeId) -> int:
    """How many others a peer has in its view."""
    return int(state(cluster, node)["sampling peers"])


def delivered(cluster: Cluster, node: NodeId) -> int:
    with ControlClient(node, cluster.socket_path(node), PATIENCE_S) as client:
        return int(client.metrics()["messages_delivered"])


@pytest.mark.deep
def test_peers_find_each_other_lose_some_and_go_on_under_the_commands(tmp_path: Path, said: Said) -> None:
    with cluster_of(tmp_path) as cluster:
        config = ("--config", cluster.file)
        shown = said("cluster", "up", *config)
        assert "peer-0 up" in shown and "peer-4 up" in shown
        # One may be missing while it is asked: whoever does not answer is forgotten at once.
        assert until(lambda: all(known(cluster, node) >= 3 for node in range(PEERS))), "from peer 0 alone"

        lines: list[str] = []

        def watch() -> None:
            with ControlClient(4, cluster.socket_path(4), PATIENCE_S) as client:
                lines.extend(line["message"] for line in list(client.tail(["orders"], 4, 3))[1:])

        watching = threading.Thread(target=watch)
        watching.start()
        assert "3 messages handed to sender 2 on host 2: 2#0 to 2#2" in said(
            "send", "orders", "a", "b", "c", "--node", 2, *config
        )
        asked = json.loads(said("why", "2#1", "--json", *config))
        if asked["verdict"] == "waiting":  # unless this machine was too slow to ask in time
            assert "all receivers already know it with" in asked["sentence"]
            assert 0 <= asked["stable"] <= 1
        watching.join(PATIENCE_S)
        assert lines == ["2#0", "2#1", "2#2"]

        for peer in ("peer-1", "3"):
            said("cluster", "kill", peer, *config)
        purged = int(state(cluster, 0)["sampling peers purged"])
        assert until(lambda: known(cluster, 0) <= 2), "the dead are forgotten"
        assert until(lambda: int(state(cluster, 0)["sampling peers purged"]) > purged), (
            "having been waited for"
        )
        said("send", "orders", "d", "--node", 0, *config)
        assert until(lambda: [delivered(cluster, node) for node in (0, 2, 4)] == [4, 4, 4])

        assert said("cluster", "restart", "peer-1", *config) == "started host 1 (peer-1)"
        said("cluster", "restart", "3", *config)
        assert until(lambda: known(cluster, 0) >= 3), "and those who come back are found"
        assert until(lambda: "waits" not in state(cluster, 1)), "it knows the time"
        assert "to sender 1 " in said("send", "orders", "e", "--node", 1, *config)
        found = report(cluster)
        assert found is not None
        told = said("cluster", "down", *config)  # it waits for what is under way
        assert told.startswith("the cluster 'test' is down trace: ")
        assert not any(host.pid and alive(host.pid) for host in found.hosts)
        assert not is_supervised(cluster)
        (trace,) = cluster.traces.iterdir()
        judged = json.loads(said("check", trace, "--json"))
        assert (judged["runs"], judged["violations"], judged["incomplete"]) == (1, [], [])
        (stored,) = find_runs(trace)
        back = [event.label for event in events_of(stored.table()) if event.kind is Kind.RECOVER]
        assert back == ["lost", "lost"], "a peer that keeps nothing is a new one, though its host has a disk"


def test_a_peer_that_is_down_at_the_end_does_not_keep_holes_from_being_counted(
    tmp_path: Path, said: Said
) -> None:
    with cluster_of(tmp_path) as cluster:
        config = ("--config", cluster.file)
        said("cluster", "up", *config)
        assert until(lambda: all(known(cluster, node) >= 3 for node in range(PEERS)))
        said("cluster", "kill", "3", *config)
        said("send", "orders", "a", "--node", 0, *config)
        said("cluster", "down", *config)  # it waits for what is under way, though a peer is missing
        (trace,) = cluster.traces.iterdir()
        judged = json.loads(said("check", trace, "--json"))
        (holes,) = judged["holes"]
        assert judged["incomplete"] == [trace.name]
        assert holes["count"] == 0, "the others have it"
        assert holes["nodes"] == [{"node": 3, "standing": "down", "count": 1, "messages": ["0#0"]}]


def test_init_makes_every_peer_a_sender(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: Said) -> None:
    monkeypatch.chdir(tmp_path)
    said("cluster", "init", "--protocol", "epto", "--receivers", 24, "--port", free_port_range(24))
    cluster = load_cluster(Path("cluster.toml"))
    assert len(cluster.hosts) == 24
    assert cluster.plan().senders == tuple(range(24)) == cluster.groups["all"]
    assert {spec.roles for spec in cluster.hosts} == {("peer",)}


def test_several_peers_may_share_a_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: Said) -> None:
    monkeypatch.chdir(tmp_path)
    words = ("--option", "peers_per_host=6", "--option", "sampling=cyclon", "--port", free_port_range(4))
    said("cluster", "init", "--protocol", "epto", "--receivers", 20, *words)
    cluster = load_cluster(Path("cluster.toml"))
    assert [len(spec.roles) for spec in cluster.hosts] == [6, 6, 6, 2]
    assert cluster.options == {"peers_per_host": 6, "sampling": "cyclon"}
    assert cluster.find_host("peer-13").id == 2
    assert "--option takes NAME=VALUE" in said("cluster", "init", "--option", "durable", code=2)


def test_peers_that_share_hosts_deliver_in_one_order() -> None:
    async def act() -> None:
        async with lab(Lab(peers(20, round_ns=20_000_000, peers_per_host=5), datagram_max=60_000)) as made:
            assert len(made.hosts) == 4
            for number in range(20):
                made.submit(number, b"%d" % number)
            await made.until_delivered(20)
            orders = [made.payloads(node) for node in range(20)]
            assert all(order == orders[0] for order in orders) and len(set(orders[0])) == 20

    run(act())


def peers(count: int, **options: object) -> Plan:
    protocol = find_protocol("epto")
    deployment = Deployment.disjoint(1, count, count, colocated=True)
    return protocol.deploy(deployment, protocol.options(**options))


def test_dead_peers_hold_up_nobody_and_little_waits_for_them() -> None:
    """Large balls go on to peers that are gone: more than a window, again and again."""
    payload, dead = bytes(30_000), (7, 8, 9)

    async def act() -> None:
        async with lab(
            Lab(peers(10, round_ns=100_000_000, ttl=30, relay_bytes=1 << 20), datagram_max=60_000)
        ) as made:
            made.submit(0, b"first")
            await made.until_delivered(1)
            for host in dead:
                await made.stop(host)
                del made.heard[host]
            for number in range(1, 16):
                made.submit(number % 7, payload)
                await until_in_loop(lambda: not made.count("backlog_messages"))
            await made.until_delivered(16)
            orders = [made.payloads(node) for node in made.heard]
            assert all(order == orders[0] for order in orders)
            assert made.failures() == [] and made.count("overflow") == 0
            await until_in_loop(lambda: all(host.metrics.links_away == 3 for host in made.hosts.values()))
            assert made.count("dropped_away") > 0, "what was for them went nowhere"
            await until_in_loop(lambda: not any(host.wire.pressed() for host in made.hosts.values()))
            for live in made.hosts.values():
                gone = [live.wire.peers[host].link for host in dead]
                assert all(link.queued == 0 and link.under_way <= WINDOW for link in gone)

    run(act())


def test_what_peers_relay_is_bounded_and_the_rest_waits_its_turn() -> None:
    """Of more than a ball may hold, some is taken when some is delivered, and all comes through in order."""
    limit = 64 << 10
    plan = peers(4, round_ns=10_000_000, relay_bytes=3 * limit)

    async def act() -> None:
        largest = 0
        async with lab(Lab(plan, datagram_max=60_000)) as made:
            made.submit(0, *(bytes(10_000) for _ in range(60)))

            def note() -> bool:
                nonlocal largest
                explained = made.hosts[1].explain_node(1)
                largest = max(largest, sum(len(wait.payload or b"") for wait in explained.waits))
                return all(len(made.payloads(node)) == 60 for node in made.heard)

            await until_in_loop(note)
            assert made.failures() == []
        assert 0 < largest <= limit + 60_000, "one packet more at most"

    run(act())
