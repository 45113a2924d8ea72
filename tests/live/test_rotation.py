"""Rotating the key: each step waits for all hosts, and no two hosts are ever without a common key."""

from itertools import combinations
from pathlib import Path

import pytest

from ordercast.core import HostId, LocalError
from ordercast.net.cluster.key_file import add_key, create_keys, load_keys
from ordercast.net.cluster.rotation import key_name, rotate, step
from ordercast.net.links.keyring import Keyring


class Fleet:
    """Hosts that read the key file one by one, each a few questions later than the one before."""

    def __init__(self, path: Path, hosts: int, stuck: frozenset[HostId] = frozenset()) -> None:
        self.path = path
        self.rings = {host: load_keys(path) for host in range(hosts)}
        self.stuck = stuck
        self.asked = 0

    def known(self) -> dict[HostId, list[str]]:
        """What the hosts would say; one of them has read the file since the last time."""
        reader = self.asked % len(self.rings)
        self.asked += 1
        if reader not in self.stuck:
            self.rings[reader] = load_keys(self.path)
        for one, other in combinations(self.rings.values(), 2):
            assert one.active.id in other.accepted
            assert other.active.id in one.accepted
        return {host: _names(ring) for host, ring in self.rings.items()}


def _names(ring: Keyring) -> list[str]:
    others = sorted(key for key in ring.accepted if key != ring.active.id)
    return [key_name(key) for key in (ring.active.id, *others)]


def test_all_hosts_end_with_the_new_key_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ordercast.net.cluster.rotation.POLL_S", 0.0)
    path = tmp_path / "k"
    old = create_keys(path)
    fleet, told = Fleet(path, 3), list[str]()
    ring = rotate(path, fleet.known, told.append)
    assert old.active.id not in ring.accepted
    assert all(one == ring for one in fleet.rings.values())
    assert [line[:11] for line in told] == ["step 1 of 3", "step 2 of 3", "step 3 of 3"]


def test_a_host_that_is_stuck_stops_the_rotation_where_all_still_understand_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ordercast.net.cluster.rotation.POLL_S", 0.0)
    path = tmp_path / "k"
    old = create_keys(path)
    with pytest.raises(LocalError, match=r"host 1 did not accept the new key within 0\.05 s"):
        rotate(path, Fleet(path, 3, frozenset({1})).known, lambda line: None, 0.05)
    left = load_keys(path)
    assert left.active == old.active
    assert len(left.accepted) == 2
    # When it is mended, the next rotation replaces what both left.
    ring = rotate(path, Fleet(path, 3).known, lambda line: None)
    assert not set(ring.accepted) & set(left.accepted)


def test_a_cluster_that_is_down_is_rotated_at_once(tmp_path: Path) -> None:
    path = tmp_path / "k"
    create_keys(path)
    old = add_key(path)
    ring = rotate(path, dict, lambda line: None)
    assert load_keys(path) == ring
    assert not set(ring.accepted) & set(old.accepted)


def test_the_same_steps_by_hand(tmp_path: Path) -> None:
    path = tmp_path / "k"
    old = create_keys(path).active
    with pytest.raises(LocalError, match="add another first"):
        step(path, "activate")
    assert step(path, "add").active == old
    activated = step(path, "activate")
    assert activated.active != old and old.id in activated.accepted
    assert step(path, "retire") == Keyring.of([activated.active])
