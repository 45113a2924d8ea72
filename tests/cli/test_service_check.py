"""`ordercast service check`: services whose replicas would differ are found out, and good ones are not."""

from pathlib import Path

import pytest

from tests.cli.conftest import Command

SERVICES = """
import time
from dataclasses import dataclass
from enum import Enum
from typing import Literal

import ordercast


class Color(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Point:
    x: int
    tags: list[str]


class Good(ordercast.Service):
    names: set[str]

    def __init__(self) -> None:
        self.names = set()
        self.draws: list[float] = []

    @ordercast.operation
    def add(self, name: str, color: Color, kind: Literal["a", "b"], where: Point | None) -> list[str]:
        if name == "b":
            raise ordercast.Refused("no b")
        self.names.add(f"{name}{color.value}{kind}{where}")
        return sorted(self.names)

    @ordercast.operation
    def draw(self, table: dict[str, tuple[int, bytes]]) -> float:
        self.draws.append(self.context.rng.random() + self.context.now_ns)
        return len(table) + self.draws[-1]

    @ordercast.operation
    def fail(self) -> object:
        raise RuntimeError(object())

    @ordercast.read
    def count(self) -> int:
        return len(self.names)


class HashOrder(ordercast.Service):
    names: set[str]

    def __init__(self) -> None:
        self.names = set()

    @ordercast.operation
    def add(self, name: str) -> list[str]:
        self.names.add(name)
        return list(self.names)


class Clock(ordercast.Service):
    def __init__(self) -> None:
        self.at = 0

    @ordercast.operation
    def tick(self) -> None:
        self.at = time.time_ns()


class Forgets(ordercast.Service):
    def __init__(self) -> None:
        self.data: list[bool] = []

    def snapshot(self) -> bytes:
        return bytes(self.data[:3])

    def restore(self, state: bytes) -> None:
        self.data = list(map(bool, state))

    @ordercast.operation
    def add(self, value: bool) -> int:
        self.data.append(value)
        return len(self.data)


class Peeks(ordercast.Service):
    def __init__(self) -> None:
        self.seen = 0

    @ordercast.read
    def get(self) -> int:
        self.seen += 1
        return self.seen


class Grows(ordercast.Service):
    def __init__(self) -> None:
        self.data: list[object] = []

    @ordercast.operation
    def put(self, value: int | None) -> None:
        self.data.append(object() if value is None else value)


class Callback(ordercast.Service):
    @ordercast.operation
    def put(self, when: "ordercast.Service") -> None: ...


class Narrow(ordercast.Service):
    generate = None

    @ordercast.operation
    def put(self, value: Literal[4]) -> None: ...
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "rehearsed.py").write_text(SERVICES)
    return tmp_path


@pytest.mark.parametrize("name", ["rehearsed:Good", "rehearsed:Narrow", "kv", "counter", "echo", "register"])
def test_a_good_service_passes(ordercast: Command, folder: Path, name: str) -> None:
    found = ordercast("service", "check", name, "--folder", folder, "--operations", 200)
    assert (found.code, found.out) == (0, f"{name}: 200 operations did the same in every process\n"), found


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("HashOrder", "two processes differ first at operation 2, add("),
        ("Clock", "two processes differ first at operation 1, tick(): the states after it are {'at': "),
        ("Forgets", "a replica that restored a snapshot differs first at operation 6, add("),
        ("Peeks", "after operation 1, get(), it is a read, but it changed the state: {'seen': 0} became"),
        ("Grows", "the state cannot be saved: TypeError: Encoding objects of type object is unsupported"),
    ],
)
def test_a_service_whose_replicas_would_differ_is_found_out(
    ordercast: Command, folder: Path, name: str, said: str
) -> None:
    found = ordercast("service", "check", f"rehearsed:{name}", "--folder", folder, "--json")
    assert found.code == 1
    (fault,) = found.json()["faults"]
    assert said in fault


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (
            "rehearsed:Callback",
            "no values can be drawn for put(when: 'ordercast.Service')",
        ),
        ("rehearsed:Nobody", "the module rehearsed has no Nobody"),
        ("nowhere:Service", "there is no module nowhere in"),
        ("store", "no service 'store'; name a class as module:Class, or one of: counter, echo, kv, register"),
    ],
)
def test_what_is_no_service_is_told_in_one_line(
    ordercast: Command, folder: Path, name: str, said: str
) -> None:
    found = ordercast("service", "check", name, "--folder", folder)
    assert (found.code, found.out, found.err.count("\n")) == (2, "", 1)
    assert said in found.err
