"""The roster: versions, the cluster file, and which hosts can come or be removed."""

from pathlib import Path

import msgspec
import pytest

from ordercast.core import LocalError
from ordercast.net.cluster.cluster import Cluster
from ordercast.net.cluster.file import load_cluster
from ordercast.net.cluster.host_changes import with_host, without_host, write_changes
from ordercast.net.cluster.roster import Change, Roster
from ordercast.net.cluster.roster_file import load_saved, save, saved_path
from ordercast.net.cluster.watched_file import WatchedCluster
from ordercast.net.transports.address import free_ports
from tests.live.cluster_files import write_cluster

CAME = Change(3, "127.0.0.1:9", "peer", (0,))
WENT = Change(1)


def epto(folder: Path, **more: object) -> Cluster:
    """Three peers in one group."""
    top = "senders = 3\ncolocated = true"
    return load_cluster(write_cluster(folder, protocol="epto", receivers=3, top=top, **more))  # type: ignore[arg-type]


def address() -> str:
    return f"127.0.0.1:{free_ports(1)[0]}"


def again(cluster: Cluster) -> Cluster:
    """What the file says now."""
    return load_cluster(cluster.file)


# Versions


def test_the_version_is_the_number_of_changes() -> None:
    roster = Roster((CAME, WENT))
    assert roster.version == 2
    assert roster.added == (CAME,)
    assert roster.removed == {1}
    assert (roster.number_of(3, removes=False), roster.number_of(1, removes=True)) == (1, 2)
    assert roster.number_of(0, removes=True) == 0


def test_a_longer_roster_follows_a_shorter_one_only_if_it_begins_with_it() -> None:
    assert Roster((CAME, WENT)).follows(Roster((CAME,)))
    assert Roster((CAME,)).follows(Roster())
    assert not Roster((CAME, WENT)).follows(Roster((WENT,)))
    assert not Roster((CAME,)).follows(Roster((CAME, WENT)))


def test_for_the_trace_a_host_that_took_part_was_not_removed() -> None:
    assert Roster((CAME, WENT)).keeping([1]) == Roster((CAME,))
    assert Roster((CAME, WENT)).keeping([0]) == Roster((CAME, WENT))


# The file


def test_a_host_that_came_is_in_the_file_with_its_change(tmp_path: Path) -> None:
    cluster, place = epto(tmp_path), address()
    comment = "# keep this line\n"
    cluster.file.write_text(comment + cluster.file.read_text())
    changed = with_host(cluster, place, start=False)
    write_changes(changed)
    text = cluster.file.read_text()
    assert text.startswith(comment)
    assert text.endswith(
        f'\n[[host]]\nid = 3\naddress = "{place}"\nroles = ["peer"]\nadded = 1\ngroups = ["orders"]\n'
        "start = false\n"
    )
    found = again(cluster)
    assert found.roster == changed.roster
    assert found.hosts == changed.hosts
    assert found.plan().groups == {0: (0, 1, 2, 3)}
    assert found.plan().changes == 1
    assert found.node_names[3] == ("peer-3",)


def test_a_removed_host_keeps_its_table_and_others_keep_their_names(tmp_path: Path) -> None:
    cluster = epto(tmp_path)
    write_changes(without_host(cluster, cluster.host(1)))
    assert "[[host]]\nremoved = 1\nid = 1\n" in cluster.file.read_text()
    found = again(cluster)
    assert [spec.id for spec in found.hosts] == [0, 2]
    assert found.find_host("peer-2").id == 2
    for name in ("1", "peer-1"):
        with pytest.raises(LocalError, match=r"host 1 was removed|there is no host 'peer-1'"):
            found.find_host(name)


def test_changes_follow_each_other_and_ids_are_not_used_again(tmp_path: Path) -> None:
    cluster = epto(tmp_path)
    for _ in range(2):
        cluster = with_host(cluster, address())
        write_changes(cluster)
    cluster = without_host(again(cluster), cluster.host(4))
    write_changes(cluster)
    write_changes(with_host(again(cluster), address()))
    found = again(cluster)
    assert [spec.id for spec in found.hosts] == [0, 1, 2, 3, 5]
    assert found.roster.version == 4
    assert sorted(found.plan().removed) == [4]


def test_changes_that_were_only_heard_of_come_into_the_file_with_the_next_one(tmp_path: Path) -> None:
    cluster = epto(tmp_path)
    heard = without_host(with_host(cluster, address()), with_host(cluster, address()).host(3))
    save(cluster.folder, heard.roster)
    assert again(cluster).roster == heard.roster
    write_changes(with_host(again(cluster), address()))
    saved_path(cluster.folder).unlink()
    assert again(cluster).roster.version == 3
    assert again(cluster).roster.follows(heard.roster)


def test_another_host_may_have_the_address_of_a_removed_one(tmp_path: Path) -> None:
    cluster = epto(tmp_path)
    place = str(cluster.host(1).address)
    write_changes(without_host(cluster, cluster.host(1)))
    write_changes(with_host(again(cluster), place))
    assert str(again(cluster).host(3).address) == place


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("id = 3\nadded = 2", r"line \d+: host\[3\]\.added: no host has change 1"),
        ("id = 4\nadded = 1", "the plan has no host 4"),
        ('id = 3\nadded = 1\ngroups = ["x"]', "there is no group 'x'"),
        ("id = 3\nadded = 2\nremoved = 1", "cannot be removed before it was added"),
        ("id = 3\nadded = 1\nremoved = 1", "another host already has change 1"),
        ("id = 3\nadded = 0", "`int` >= 1"),
    ],
)
def test_changes_that_cannot_be_are_refused_with_their_line(tmp_path: Path, more: str, said: str) -> None:
    file = epto(tmp_path).file
    groups = "" if "groups" in more else '\ngroups = ["orders"]'
    table = f'[[host]]\n{more}{groups}\naddress = "{address()}"\nroles = ["peer"]\n'
    file.write_text(file.read_text() + table)
    with pytest.raises(LocalError, match=said):
        load_cluster(file)


def test_a_file_that_cannot_be_edited_stays_as_it_is(tmp_path: Path) -> None:
    cluster = epto(tmp_path)
    hosts = ", ".join(f'{{id = {spec.id}, address = "{spec.address}"}}' for spec in cluster.hosts)
    head = cluster.file.read_text().split("[options]")[0]
    text = f"{head}host = [{hosts}]\n[groups]\norders = 3\n"
    cluster.file.write_text(text)
    with pytest.raises(LocalError, match=r"write every host as a table \[\[host\]\]"):
        write_changes(with_host(again(cluster), address()))
    assert cluster.file.read_text() == text
    assert not list(tmp_path.glob(".cluster.toml-*"))


# What hosts heard of


def test_an_older_roster_is_not_kept_over_a_newer_one(tmp_path: Path) -> None:
    newer = Roster((CAME, WENT))
    save(tmp_path, newer)
    save(tmp_path, Roster((CAME,)))
    assert load_saved(tmp_path) == newer


def test_files_that_disagree_are_refused(tmp_path: Path) -> None:
    cluster = epto(tmp_path)
    write_changes(with_host(cluster, address()))
    save(cluster.folder, Roster((WENT, CAME)))
    with pytest.raises(LocalError, match="disagree on which hosts came"):
        again(cluster)


@pytest.mark.parametrize("content", [b"{", b'{"changes": [{"host": -1}]}', b'{"changes": [], "more": 1}'])
def test_a_damaged_roster_is_named(tmp_path: Path, content: bytes) -> None:
    saved_path(tmp_path).parent.mkdir()
    saved_path(tmp_path).write_bytes(content)
    with pytest.raises(LocalError, match=r"roster\.json: not a roster"):
        load_saved(tmp_path)


def test_a_watched_cluster_is_read_again_only_when_a_file_has_changed(tmp_path: Path) -> None:
    watched = WatchedCluster(epto(tmp_path))
    assert watched.refresh() is None
    write_changes(with_host(watched.cluster, address()))
    found = watched.refresh()
    assert found is not None and found.roster.version == 1
    save(found.folder, without_host(found, found.host(0)).roster)
    found = watched.refresh()
    assert found is not None and found.roster.version == 2
    found.file.write_text("nonsense")
    with pytest.raises(LocalError, match="not TOML"):
        watched.refresh()
    assert watched.refresh() is None


# Who can come, and who can be removed


@pytest.mark.parametrize(
    ("place", "role", "groups", "said"),
    [
        ("nowhere", "", (), "'nowhere' is not an address"),
        ("127.0.0.1:0", "", (), "is not an address"),
        ("[::1]:7000", "", (), "IPv4 and IPv6 addresses cannot be mixed"),
        ("127.0.0.1:7000", "sequencer", (), "epto cannot take in a sequencer; it takes in: peer, publisher"),
        ("127.0.0.1:7000", "peer", ("x",), "there is no group 'x'; the groups are: orders"),
        ("127.0.0.1:7000", "publisher", ("orders",), "a new publisher only sends"),
    ],
)
def test_a_host_that_cannot_come(
    tmp_path: Path, place: str, role: str, groups: tuple[str, ...], said: str
) -> None:
    with pytest.raises(LocalError, match=said):
        with_host(epto(tmp_path), place, role, groups)


def test_an_address_that_another_host_has(tmp_path: Path) -> None:
    cluster = epto(tmp_path)
    place = str(cluster.host(1).address)
    with pytest.raises(LocalError, match=f"host 1 already has the address {place}"):
        with_host(cluster, place)


def test_with_several_groups_the_new_peer_must_name_its_own(tmp_path: Path) -> None:
    cluster = epto(tmp_path)
    text = cluster.file.read_text().replace("orders = 3", "orders = 2\naudit = 1")
    cluster.file.write_text(text)
    with pytest.raises(LocalError, match="name the groups that the new peer receives, of: orders, audit"):
        with_host(again(cluster), address())
    assert with_host(again(cluster), address(), "peer", ["audit"]).plan().groups == {0: (0, 1), 1: (2, 3)}
    with pytest.raises(
        LocalError, match="host 2 cannot be removed: it has the last receiver of group 'audit'"
    ):
        without_host(again(cluster), again(cluster).host(2))


def test_a_group_without_receivers_keeps_nobody_from_going(tmp_path: Path) -> None:
    cluster = epto(tmp_path)
    text = cluster.file.read_text().replace("orders = 3", "orders = [0, 1, 2]\naudit = []")
    cluster.file.write_text(text)
    assert again(cluster).groups == {"orders": (0, 1, 2), "audit": ()}
    assert without_host(again(cluster), again(cluster).host(2)).plan().groups == {0: (0, 1), 1: ()}


def test_the_last_receiver_and_the_last_sender_stay(tmp_path: Path) -> None:
    cluster = epto(tmp_path)
    for host in (0, 1):
        cluster = without_host(cluster, cluster.host(host))
    with pytest.raises(
        LocalError, match="host 2 cannot be removed: it has the last receiver of group 'orders'"
    ):
        without_host(cluster, cluster.host(2))
    apart = load_cluster(write_cluster(tmp_path, protocol="epto", receivers=2))
    with pytest.raises(LocalError, match="host 2 cannot be removed: it has the last sender"):
        without_host(apart, apart.host(2))


def test_hydra_takes_in_and_removes_sequencers_only(tmp_path: Path) -> None:
    options = "sequencers = 1\nspares = 0\nreplicas = 1"
    path = write_cluster(
        tmp_path, protocol="hydra", receivers=1, top="colocated = true", options=options, hosts=(0, 2, 3)
    )
    cluster = load_cluster(path)
    with pytest.raises(LocalError, match="hydra cannot take in a receiver"):
        with_host(cluster, address(), "receiver")
    with pytest.raises(LocalError, match="hydra cannot remove host 0, a receiver; it can remove: sequencer"):
        without_host(cluster, cluster.host(0))
    with pytest.raises(LocalError, match="host 2 cannot be removed: no other sequencer is running"):
        without_host(cluster, cluster.host(2))
    spare = with_host(cluster, address(), start=False)
    with pytest.raises(LocalError, match="no other sequencer is running"):
        without_host(spare, spare.host(2))
    assert [spec.id for spec in without_host(spare, spare.host(2), running=[4]).hosts] == [0, 3, 4]
    more = with_host(cluster, address())
    assert more.node_names[4] == ("sequencer-1",)
    assert [spec.id for spec in without_host(more, more.host(2)).hosts] == [0, 3, 4]


@pytest.mark.parametrize("protocol", ["atomic_multicast", "unordered"])
def test_protocols_with_fixed_members_say_so(tmp_path: Path, protocol: str) -> None:
    cluster = load_cluster(write_cluster(tmp_path, protocol=protocol))
    with pytest.raises(LocalError, match=f"{protocol} cannot take in hosts while it runs"):
        with_host(cluster, address())
    with pytest.raises(LocalError, match=f"{protocol} cannot remove hosts while it runs"):
        without_host(cluster, cluster.host(0))


def test_hosts_on_loopback_and_on_the_network_do_not_mix(tmp_path: Path) -> None:
    cluster = epto(tmp_path)
    with pytest.raises(LocalError, match="the other hosts, which are on loopback, cannot reach"):
        with_host(cluster, "10.0.0.1:7000")
    cluster.file.write_text(cluster.file.read_text().replace("127.0.0.1", "10.0.0.1"))
    with pytest.raises(LocalError, match="which are on the network, cannot reach each other"):
        with_host(again(cluster), address())


def test_a_roster_travels_as_it_is() -> None:
    roster = Roster((CAME, WENT))
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(roster), type=Roster) == roster
