"""The commands of a cluster with a service, on real processes: init, up, call, why, top, down, check."""

import json
from pathlib import Path

import pytest

from ordercast.net.cluster.file import load_cluster
from tests.live.cluster_files import free_port_range
from tests.live.commands import Said, ended
from tests.live.serving import STORE, write_service


def new_cluster(said: Said, *words: object, protocol: str = "unreplicated") -> None:
    Path("store.py").write_text(STORE)
    port = free_port_range(12)
    said("cluster", "init", "--service", "store:Store", "--protocol", protocol, "--port", port, *words)


def test_a_whole_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: Said) -> None:
    monkeypatch.chdir(tmp_path)
    new_cluster(said, "--replicas", 2, "--clients", 1)
    with ended(load_cluster(Path("cluster.toml"))) as cluster:
        assert (cluster.service, cluster.senders, cluster.colocated) == ("store:Store", 1, False)
        shown = said("cluster", "up")
        assert "server-0 up" in shown and "client-0 spare" in shown
        assert said("call", "put", "a", "5") == ""
        assert said("call", "get", "a") == "5"
        assert said("call", "take", "a", "2") == "3"
        assert json.loads(said("call", "get", "b", "--json")) == {
            "operation": "get", "outcome": "answered", "result": None,
        }  # fmt: skip
        assert said("call", "take", "a", "9", code=1) == "ordercast: take: refused: a has only 3"
        assert said("call", "take", "b", code=3) == "ordercast: take: failed: KeyError: 'b'"
        assert "wrong arguments for take(key: str, amount: int = 1)" in said("call", "take", "a", "x", code=2)
        assert "Store has no operation 'pop'; it has: get, put, take" in said("call", "pop", code=2)
        listed = said("call")
        assert "get(key: str) -> str | None" in listed and "Set the value of a key." in listed
        said("cluster", "down")
        (trace,) = cluster.traces.iterdir()
        assert json.loads((trace / "run.json").read_text())["complete"]
        assert "unknown: no answer came within 0.3 s" in said("call", "get", "a", "--timeout", "0.3", code=4)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--service", "store:Nobody"), "service store:Nobody: the module store has no Nobody"),
        (("--service", "nowhere:Store"), "service nowhere:Store: there is no module nowhere in"),
        (("--service", "broken:Store"), "the module broken cannot be imported: ZeroDivisionError"),
        (("--service", "store:Queues"), "the state of Queues cannot be saved: "),
        (
            ("--service", "store:Store", "--protocol", "hydra"),
            "hydra orders messages, and does not",
        ),
    ],
)
def test_a_service_that_cannot_be_replicated_is_told_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: Said, words: tuple[str, ...], complaint: str
) -> None:
    monkeypatch.chdir(tmp_path)
    queues = "\n\nclass Queues(Store):\n    def __init__(self) -> None:\n        self.data = {1: object()}\n"
    Path("store.py").write_text(STORE + queues)
    Path("broken.py").write_text("1 / 0\n")
    assert complaint in said("cluster", "init", "--protocol", "unreplicated", *words, code=2)
    assert not Path("cluster.toml").exists()


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        (
            'service = "store:Store"',
            'service = "stor:Store"',
            "line 3: service: service stor:Store: there",
        ),
        (
            'protocol = "unreplicated"',
            'protocol = "hydra"',
            "line 3: service: hydra orders messages, and",
        ),
        ('service = "store:Store"', "", "line 4: clients: is only allowed with `service`"),
        ("clients = 1", "clients = 1\nsenders = 1", "clients: senders and clients are the same nodes"),
    ],
)
def test_errors_in_the_file_name_the_line(
    tmp_path: Path, said: Said, old: str, new: str, complaint: str
) -> None:
    file = write_service(tmp_path)
    file.write_text(file.read_text().replace(old, new))
    assert complaint in said("call", "get", "a", "--config", file, code=2)


def test_a_cluster_without_a_service_cannot_be_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: Said
) -> None:
    monkeypatch.chdir(tmp_path)
    said("cluster", "init")
    assert "the cluster has no service; it orders messages: ordercast send" in said("call", "get", code=2)


def test_a_replica_with_the_state_of_another_service_does_not_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: Said
) -> None:
    monkeypatch.chdir(tmp_path)
    new_cluster(said, "--replicas", 1, "--option", "snapshot_every=1", protocol="active")
    with ended(load_cluster(Path("cluster.toml"))):
        said("cluster", "up")
        said("call", "put", "a", "5")
        said("cluster", "restart", "0")
        assert said("call", "get", "a") == "5"
        said("cluster", "down")
        Path("store.py").write_text(STORE.replace("def take(self, key: str", "def take(self, name: str"))
        complaint = said("cluster", "up", code=2)
        assert "the saved state belongs to another service than store:Store" in complaint
