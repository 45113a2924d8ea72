"""Ports that a process has found are not found by others, even while nothing is bound to them."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from ordercast.core import LocalError
from ordercast.net.transports import address
from ordercast.net.transports.address import free_ports

FIND = "from ordercast.net.transports.address import free_ports; print(*free_ports(150))"


@pytest.fixture
def blocks(monkeypatch: pytest.MonkeyPatch) -> Iterator[address._Blocks]:
    """Blocks that no earlier test has taken anything from."""
    made = address._Blocks()
    monkeypatch.setattr(address, "_blocks", made)
    yield made
    made.close()


def test_ports_are_free_and_distinct() -> None:
    first, second = free_ports(3), free_ports(300)
    assert len({*first, *second}) == len(first) + len(second)


def test_another_process_does_not_find_what_this_one_keeps(blocks: address._Blocks) -> None:
    """The other one begins its search where this one did."""
    kept = free_ports(150)
    other = f"import os; os.getpid = lambda: {blocks.process}; {FIND}"
    found = subprocess.run([sys.executable, "-c", other], capture_output=True, text=True, check=True).stdout
    assert len(found.split()) == 150
    assert not {*kept} & {*map(int, found.split())}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_process_that_was_forked_finds_others() -> None:
    free_ports(1)
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.write(writer, json.dumps(free_ports(5)).encode())
        os._exit(0)
    os.waitpid(child, 0)
    with os.fdopen(reader, "rb") as answer:
        os.close(writer)
        assert not {*json.load(answer)} & {*free_ports(5)}


def test_a_port_that_is_in_use_is_passed_over(blocks: address._Blocks) -> None:
    first = free_ports(1)[0]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as used:
        used.bind(("127.0.0.1", first + 1))
        assert free_ports(1) == [first + 2]


def test_a_machine_without_free_ports_says_so(
    blocks: address._Blocks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(address, "is_free", lambda _: False)
    with pytest.raises(LocalError, match="does not have 2 free ports"):
        free_ports(2)
