"""Who may change what: parts that work together closely call each other's methods, and write no fields."""

import ast
from pathlib import Path

import pytest

from tests import tidy

PACKAGE = tidy.SOURCE / "ordercast"


def foreign_writes(code: str) -> set[str]:
    """The fields of other objects that code assigns or deletes, as it names them."""
    found = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del):
            owner = ast.unparse(node.value)
            if owner != "self":
                found.add(f"{owner}.{node.attr}")
    return found


def writes_of(*paths: Path) -> set[str]:
    return {write for path in paths for write in foreign_writes(path.read_text(encoding="utf-8"))}


@pytest.mark.parametrize(
    ("code", "writes"),
    [
        ("self.a = other.b", set()),
        ("env.now = 1", {"env.now"}),
        ("self.world.count += 1", {"self.world.count"}),
        ("self.a, env.b = 1, 2", {"env.b"}),
        ("del env.timer", {"env.timer"}),
        ("env.saved.clear()", set()),
    ],
)
def test_writes_to_other_objects_are_found(code: str, writes: set[str]) -> None:
    assert foreign_writes(code) == writes


def test_the_world_and_its_nodes_write_no_fields_of_each_other() -> None:
    assert writes_of(PACKAGE / "sim" / "world.py") == {"self.network.lost"}
    fast_path = {"host.busy_ns", "host.free_at", "host.serving"}
    assert writes_of(PACKAGE / "sim" / "node_env.py") == fast_path


def test_nobody_but_the_host_writes_its_fields() -> None:
    above = [path for layer in ("cluster", "tools", "api") for path in (PACKAGE / "net" / layer).glob("*.py")]
    assert len(above) > 10
    written = {write for write in writes_of(*above) if ".metrics." not in write}  # anybody may count
    assert {write for write in written if "host" in write or "live" in write} == set()


def test_a_live_host_writes_only_what_the_contract_gives_to_the_driver() -> None:
    written = writes_of(*(PACKAGE / "net" / "host").glob("*.py"))
    counters = {write for write in written if "metrics." in write}
    assert written - counters == {"env.now", "backlog.next_message"}
