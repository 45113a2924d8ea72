"""Processes that look for free ports at the same time do not find the same ones."""

import os
from itertools import pairwise

import pytest

from ordercast.net.transports import address
from ordercast.net.transports.address import free_ports

PORTS_OF_A_CLUSTER = 60


def test_processes_that_start_one_after_the_other_look_far_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(address, "is_free", lambda _: True)
    begins = []
    for pid in range(5000, 5300):
        monkeypatch.setattr(os, "getpid", lambda pid=pid: pid)
        monkeypatch.setattr(address, "_looked", 0)
        begins += free_ports(1)
    assert min(after - before for before, after in pairwise(sorted(begins))) >= PORTS_OF_A_CLUSTER


def test_ports_are_free_and_distinct() -> None:
    first, second = free_ports(3), free_ports(3)
    assert len({*first, *second}) == len(first) + len(second)
