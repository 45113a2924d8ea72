"""Services by name, and the operations that are drawn for them."""

from pathlib import Path
from random import Random

import pytest

from ordercast.core import Context, LocalError, Outcome, ServiceType, message_id, outcome_of
from ordercast.services import PLAIN, Operations, find_service, workload_of


@pytest.mark.parametrize("name", PLAIN)
def test_drawn_operations_are_valid_and_the_share_of_reads_is_kept(name: str) -> None:
    operations = Operations(workload_of(name), reads=0.25, size=32)
    machine, rng = find_service(name).make(), Random(1)
    outcomes, reads = [], 0
    for number in range(1000):
        drawn = operations.draw(rng, number)
        run = machine.read if drawn.read else machine.apply
        outcomes.append(outcome_of(run(drawn.payload, Context(message_id(1, number), number))))
        reads += drawn.read
    assert Outcome.FAILED not in outcomes and 200 < reads < 300
    assert outcomes.count(Outcome.ANSWERED) > 800


@pytest.mark.parametrize("name", PLAIN)
def test_built_in_services_survive_snapshots(name: str) -> None:
    spec, operations, rng = find_service(name), Operations(workload_of(name), reads=0.2, size=8), Random(2)
    one, other = spec.make(), spec.make()
    for number in range(300):
        drawn, context = operations.draw(rng, number), Context(message_id(1, number), number)
        assert one.apply(drawn.payload, context) == other.apply(drawn.payload, context)
        other.restore(other.snapshot())
    assert one.snapshot() == other.snapshot()


def test_a_class_is_found_beside_the_given_folder(tmp_path: Path) -> None:
    (tmp_path / "my_store_a.py").write_text(
        "import ordercast.core as o\n\n"
        "class Store(o.Service):\n    @o.read\n    def one(self) -> int:\n        return 1\n"
    )
    assert find_service("my_store_a:Store", tmp_path).name == "my_store_a:Store"
    with pytest.raises(LocalError, match="the module my_store_a has no Shop"):
        find_service("my_store_a:Shop", tmp_path)
    workload = workload_of("my_store_a:Store", tmp_path)
    assert workload.generate(Random(1), 1, False, 8) == ("one", ()), "by its types: it has no other operation"


def test_a_module_that_fails_is_told_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "my_store_b.py").write_text("x = 1\ny = x / 0\n")
    with pytest.raises(LocalError, match=r"my_store_b cannot be imported: ZeroDivisionError.*:2"):
        find_service("my_store_b:Store", tmp_path)


@pytest.mark.parametrize(
    ("name", "what"),
    [
        (
            "nothing",
            "no service 'nothing'; name a class as module:Class, or one of: counter, echo, kv, register",
        ),
        ("no_such_module:Store", "there is no module no_such_module in"),
        (":Store", "no service ':Store'"),
        ("os:getcwd", "getcwd is not a subclass of ordercast.Service"),
    ],
)
def test_unknown_services_are_refused(name: str, what: str) -> None:
    with pytest.raises(LocalError, match=what):
        find_service(name)


def test_the_fingerprint_names_the_operations() -> None:
    kind = ServiceType.of(PLAIN["register"].service)
    assert kind.fingerprint.startswith("Register; read get() -> int | None; operation swap(")
