"""Running hosts learn which hosts there are: from the file, and from each other on other machines."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ordercast.core import HostId
from ordercast.net.cluster.cluster import Cluster
from ordercast.net.cluster.file import load_cluster
from ordercast.net.cluster.host_changes import with_host, without_host, write_changes
from ordercast.net.cluster.open_host import open_host
from ordercast.net.cluster.roster import Change, Roster
from ordercast.net.cluster.roster_file import load_saved
from ordercast.net.cluster.roster_keeper import RosterNews
from ordercast.net.host.delivered import BundleOrNotice, DeliveredBundle
from ordercast.net.host.live_host import LiveHost
from ordercast.net.transports.address import free_ports
from ordercast.protocols.hydra.service import ConfigurationReplica
from tests.deep import deep_after
from tests.live.cluster_files import write_cluster
from tests.live.live_lab import run

WAIT_S = 20.0


class Machines:
    """Hosts of one cluster with folders of their own, as if each were on its own machine."""

    def __init__(self, folder: Path, **file: Any) -> None:
        (folder / "first").mkdir()
        write_cluster(folder / "first", **file)
        self.folder = folder
        self.hosts: dict[HostId, LiveHost] = {}
        self.got: dict[HostId, list[bytes]] = {}

    def cluster(self, machine: str = "first") -> Cluster:
        """The cluster as the file of a machine says."""
        if not (self.folder / machine).exists():
            shutil.copytree(self.folder / "first", self.folder / machine, ignore=lambda *_: [".ordercast"])
        return load_cluster(self.folder / machine / "cluster.toml")

    async def start(self, host: HostId, machine: str = "first") -> LiveHost:
        """Start a host."""
        live = self.hosts[host] = open_host(self.cluster(machine), host)
        self.got[host] = got = []

        def hear(one: BundleOrNotice) -> None:
            if isinstance(one, DeliveredBundle):
                got.extend(one.bundle.payloads)

        for node in live.nodes:
            live.add_listener(node, hear)
        await live.start()
        return live

    def add(self, machine: str = "first") -> Cluster:
        """Write one more host into the file of a machine."""
        changed = with_host(self.cluster(machine), f"127.0.0.1:{free_ports(1)[0]}")
        write_changes(changed)
        return changed

    def remove(self, host: HostId) -> None:
        """Write into the first file that a host is removed."""
        cluster = self.cluster()
        write_changes(without_host(cluster, cluster.host(host)))

    def versions(self) -> list[int]:
        """The versions of all hosts."""
        return [live.plan.changes for live in self.hosts.values()]

    async def all_get(self, sender: HostId, payload: bytes, hosts: set[HostId]) -> None:
        """A message of this sender reaches these hosts."""
        assert self.hosts[sender].submit(sender, (0,), [payload]) is not None
        await until(lambda: all(payload in self.got[host] for host in hosts))


async def until(holds: Callable[[], bool]) -> None:
    """Wait until something holds, which it must."""
    async with asyncio.timeout(WAIT_S):
        while not holds():
            await asyncio.sleep(0.01)


def epto(kind: str) -> dict[str, Any]:
    """A file with three peers."""
    return {
        "protocol": "epto",
        "receivers": 3,
        "top": "senders = 3\ncolocated = true\ntrace = false",
        "options": "round_ns = 10_000_000\nttl = 12",
        "more": f'[transport]\nkind = "{kind}"',
    }


@asynccontextmanager
async def machines(folder: Path, *places: str, kind: str = "udp") -> AsyncIterator[Machines]:
    """Three hosts on these machines, all met, which leave nothing behind."""
    lab = Machines(folder, **epto(kind))
    try:
        for host, place in enumerate(places):
            await lab.start(host, place)
        await lab.all_get(0, b"first", set(range(len(places))))
        yield lab
    finally:
        for live in lab.hosts.values():
            await live.stop()


@pytest.mark.parametrize("kind", deep_after(1, ["udp", "tcp", "multicast"]))
def test_hosts_on_other_machines_learn_of_a_newcomer_and_it_takes_part(tmp_path: Path, kind: str) -> None:
    async def story() -> None:
        async with machines(tmp_path, "first", "first", "second", kind=kind) as lab:
            lab.add()
            await until(lambda: lab.versions() == [1, 1, 1])
            assert load_saved(lab.cluster("second").folder).version == 1, "its file is the old one"
            assert lab.cluster("second").hosts == lab.cluster().hosts
            assert load_saved(lab.cluster().folder).version == 0, "here the file has it"
            await lab.start(3)
            await lab.all_get(2, b"to the newcomer", {0, 1, 2, 3})
            await lab.all_get(3, b"from the newcomer", {0, 1, 2, 3})
            assert b"first" not in lab.got[3]
            assert all(live.metrics.malformed == 0 for live in lab.hosts.values())

    run(story())


def test_a_host_that_was_down_learns_from_its_peers_and_keeps_it(tmp_path: Path) -> None:
    async def story() -> None:
        async with machines(tmp_path, "first", "first", "second") as lab:
            await lab.hosts.pop(2).stop()
            lab.add()
            lab.remove(1)
            await until(lambda: lab.hosts[1].failure is not None)
            await lab.hosts.pop(1).stop()
            await lab.start(3)
            await until(lambda: lab.versions() == [2, 2])
            live = await lab.start(2, "second")
            assert live.plan.changes == 0
            await until(lambda: live.plan.changes == 2)
            await lab.all_get(2, b"back", {0, 2, 3})
            await lab.hosts.pop(2).stop()
            assert (await lab.start(2, "second")).plan.changes == 2, "kept beside its saved state"

    run(story())


@pytest.mark.parametrize("kind", deep_after(1, ["udp", "tcp", "multicast"]))
def test_a_removed_host_stops_and_the_others_forget_it(tmp_path: Path, kind: str) -> None:
    async def story() -> None:
        async with machines(tmp_path, "first", "first", "second", kind=kind) as lab:
            lab.remove(2)
            await until(lambda: lab.hosts[2].failure is not None)
            assert str(lab.hosts[2].failure) == "host 2 was removed from the cluster"
            await until(lambda: lab.versions()[:2] == [1, 1])
            assert [sorted(lab.hosts[host].wire.peers) for host in (0, 1)] == [[1], [0]]
            assert lab.hosts[0].plan.groups == {0: (0, 1)}
            await lab.all_get(1, b"without it", {0, 1})
            assert lab.hosts[0].metrics.malformed == 0, "nobody sends to a node that is not there"

    run(story())


def test_an_old_roster_that_comes_again_changes_nothing(tmp_path: Path) -> None:
    async def story() -> None:
        async with machines(tmp_path, "first", "first", "first") as lab:
            old = lab.add().roster
            lab.remove(2)
            await until(lambda: lab.versions()[:2] == [2, 2])
            lab.hosts[1].tell_host(0, msgspec.msgpack.encode(RosterNews(1, old)))
            lab.hosts[1].tell_host(0, msgspec.msgpack.encode(RosterNews(0, Roster())))
            await lab.all_get(1, b"later", {0, 1})
            assert lab.versions()[:2] == [2, 2]

    run(story())


def test_hydra_takes_in_a_sequencer_and_its_service_knows_it_after_a_restart(tmp_path: Path) -> None:
    options = "sequencers = 1\nreplicas = 1\nsuspect_ns = 10_000_000_000"
    top = "colocated = true\ntrace = false"
    lab = Machines(tmp_path, protocol="hydra", receivers=1, top=top, options=options, hosts=(0, 2, 3))

    def wanted() -> int:
        service = lab.hosts[3].nodes[3].process
        assert isinstance(service, ConfigurationReplica)
        return service._audience.target

    async def story() -> None:
        for host in (0, 2, 3):
            await lab.start(host)
        lab.add()
        await until(lambda: lab.versions() == [1, 1, 1])
        assert wanted() == 2
        await lab.start(4)
        await until(lambda: lab.hosts[0].metrics.config == 1)
        await lab.hosts.pop(3).stop()
        await lab.start(3)
        assert wanted() == 2, "processes are told when they start, too"
        assert lab.hosts[0].submit(1, (0,), [b"stamped"]) is not None
        await until(lambda: b"stamped" in lab.got[0])

    async def ended() -> None:
        try:
            await story()
        finally:
            for live in lab.hosts.values():
                await live.stop()

    run(ended())


IMPOSSIBLE = (
    Roster((Change(7, "127.0.0.1:9", "peer", (0,)),)),
    Roster((Change(3, "127.0.0.1:9", "peer", (5,)),)),
    Roster((Change(3, "nowhere", "peer", (0,)),)),
    Roster((Change(3, "127.0.0.1:9", "king", (0,)),)),
)
NONSENSE = (b"", b"\xc1", b"\x81\xa7version\xff", msgspec.msgpack.encode({"version": 1 << 40}))


def test_what_cannot_be_is_refused_and_the_host_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        async with machines(tmp_path, "first", "first", "first") as lab:
            for body in NONSENSE:
                lab.hosts[1].tell_host(0, body)
            for roster in IMPOSSIBLE:
                lab.hosts[1].tell_host(0, msgspec.msgpack.encode(RosterNews(roster.version, roster)))
            await until(lambda: caplog.text.count("host 1 tells of hosts that cannot be") == len(IMPOSSIBLE))
            assert lab.hosts[0].metrics.malformed == len(NONSENSE)
            await lab.all_get(1, b"afterwards", {0, 1, 2})
            assert lab.versions() == [0, 0, 0]

    run(story())


def test_a_longer_roster_that_disagrees_is_refused(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        async with machines(tmp_path, "first", "first", "first") as lab:
            lab.add()
            await until(lambda: lab.versions() == [1, 1, 1])
            other = RosterNews(2, Roster((Change(1), Change(0))))
            lab.hosts[1].tell_host(0, msgspec.msgpack.encode(other))
            await until(lambda: "host 1 disagrees on which hosts came" in caplog.text)
            await lab.all_get(1, b"afterwards", {0, 1, 2})
            assert lab.versions() == [1, 1, 1]

    run(story())


def test_a_file_that_is_being_edited_changes_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        async with machines(tmp_path, "first", "first", "first") as lab:
            file = lab.cluster().file
            text = file.read_text()
            file.write_text(text[: len(text) // 2])
            await until(lambda: caplog.text.count("cannot read the cluster file again") >= 3)
            file.write_text(text)
            lab.add()
            await until(lambda: lab.versions() == [1, 1, 1])

    run(story())
