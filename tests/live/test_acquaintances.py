"""Hosts know each other by their storages: who lost one is not let in, and takes nothing from the others."""

import asyncio
from pathlib import Path

import pytest

from ordercast.core import HostId, NodeId, Plan
from ordercast.net.host import identities
from ordercast.net.host.acquaintances import Acquaintances, StateRefused
from ordercast.net.host.set_aside import set_aside
from ordercast.net.host.store import HostTaken, Store
from ordercast.net.host.turn import Turn
from ordercast.net.links.acquaintance import StorageClaim, Verdict
from tests.live.live_lab import Lab, hydra_plan, run
from tests.live.wires import until

ONE, OTHER, THIRD = (bytes([number] * 16) for number in (1, 2, 3))


class DiskLab(Lab):
    """Hosts with files, which a test can lose."""

    def __init__(self, plan: Plan, folder: Path) -> None:
        super().__init__(plan)
        self.folder = folder
        self.as_new: set[HostId] = set()

    def path(self, host: HostId) -> Path:
        """The file with the state of a host."""
        return self.folder / f"{host}.sqlite"

    def store(self, host: HostId) -> Store:
        return Store(self.path(host), as_new=host in self.as_new)

    def lose_disk(self, host: HostId) -> None:
        """Remove all that a host has saved."""
        for path in self.folder.glob(f"{host}.*"):
            path.unlink()


def of_store(store: Store, turn: Turn, failures: list[BaseException]) -> Acquaintances:
    return Acquaintances(0, store, turn, failures.append)


async def reach(made: Lab, payload: bytes, *nodes: NodeId) -> None:
    """Send a message until these receivers have it: a cluster that has just begun may lose some."""
    for _ in range(100):
        made.submit(made.plan.senders[0], payload)
        for _ in range(50):
            if all(payload in made.payloads(node) for node in nodes):
                return
            await asyncio.sleep(0.01)
    raise AssertionError(f"{payload!r} never came")


class SavedTurn:
    """As much of a turn as is needed to remember."""

    def __init__(self) -> None:
        self.saves: dict[tuple[int, str], bytes | None] = {}


@pytest.fixture
def known(tmp_path: Path) -> Acquaintances:
    return of_store(Store(tmp_path / "0.sqlite"), SavedTurn(), [])  # type: ignore[arg-type]


def test_a_peer_is_known_by_the_storage_that_it_had_first(known: Acquaintances) -> None:
    assert known.judge(1, StorageClaim(ONE, 1, as_new=False)) is Verdict.UNKNOWN
    assert known.meet(1, StorageClaim(ONE, 1, as_new=False))
    assert known.judge(1, StorageClaim(ONE, 2, as_new=False)) is Verdict.KNOWN
    assert known.judge(1, StorageClaim(OTHER, 1, as_new=False)) is Verdict.OTHER
    assert not known.meet(1, StorageClaim(OTHER, 1, as_new=False))
    assert known.judge(2, StorageClaim(OTHER, 1, as_new=False)) is Verdict.UNKNOWN


def test_an_old_copy_of_a_storage_is_recognised_by_its_lives(known: Acquaintances) -> None:
    assert known.meet(1, StorageClaim(ONE, 7, as_new=False))
    assert known.judge(1, StorageClaim(ONE, 6, as_new=False)) is Verdict.OLDER
    assert not known.meet(1, StorageClaim(ONE, 6, as_new=False))
    assert known.meet(1, StorageClaim(ONE, 7, as_new=False))


def test_a_storage_that_was_replaced_does_not_come_back(known: Acquaintances) -> None:
    assert known.meet(1, StorageClaim(ONE, 1, as_new=True))
    assert known.meet(1, StorageClaim(OTHER, 1, as_new=True))
    assert known.judge(1, StorageClaim(ONE, 9, as_new=True)) is Verdict.REPLACED
    assert not known.meet(1, StorageClaim(ONE, 9, as_new=True))
    assert known.meet(1, StorageClaim(THIRD, 1, as_new=True))


def test_peers_are_remembered_over_restarts(tmp_path: Path) -> None:
    store, turn = Store(tmp_path / "0.sqlite"), SavedTurn()
    assert of_store(store, turn, []).meet(1, StorageClaim(ONE, 3, as_new=False))  # type: ignore[arg-type]
    store.commit(turn.saves)
    store.close()
    later = of_store(Store(tmp_path / "0.sqlite"), SavedTurn(), [])  # type: ignore[arg-type]
    assert later.judge(1, StorageClaim(ONE, 2, as_new=False)) is Verdict.OLDER
    assert later.judge(1, StorageClaim(OTHER, 1, as_new=False)) is Verdict.OTHER


def test_a_receiver_that_lost_its_disk_delivers_nothing_and_ends(tmp_path: Path) -> None:
    async def main() -> None:
        made = DiskLab(hydra_plan(receivers=3, sequencers=1, durable=True), tmp_path)
        for host in made.ids:
            await made.start(host)
        await reach(made, b"before", 0, 1, 2)
        await made.stop(1)
        made.lose_disk(1)
        lost = await made.start(1)
        await until(lambda: lost.failure is not None)
        assert isinstance(lost.failure, StateRefused)
        text = str(lost.failure)
        assert "host 1 is refused" in text
        assert "knows this host by another saved state" in text
        assert "--as-new" in text
        assert made.payloads(1) == [], "it takes nothing from those who know it"
        await reach(made, b"the others go on", 0, 2)
        for live in made.hosts.values():
            await live.stop()

    run(main())


def test_a_cluster_that_starts_for_the_first_time_and_again_lets_all_in(tmp_path: Path) -> None:
    async def main() -> None:
        for life in (1, 2, 3):
            made = DiskLab(hydra_plan(receivers=2, sequencers=1, durable=True), tmp_path)
            for host in made.ids:
                await made.start(host)
            await reach(made, b"life %d" % life, 0, 1)
            assert made.count("rejected_storage") == 0
            assert not made.failures()
            for live in made.hosts.values():
                await live.stop()

    run(main())


def test_a_host_that_comes_back_as_new_is_let_in_by_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(identities, "RESERVED", 1000)

    async def main() -> None:
        made = DiskLab(hydra_plan(receivers=2, sequencers=1), tmp_path)
        for host in made.ids:
            await made.start(host)
        sequencer = next(node.host for node in made.plan.nodes if node.role == "sequencer")
        await reach(made, b"before", 0, 1)
        await made.stop(sequencer)
        assert set_aside(made.path(sequencer)) is not None
        made.as_new.add(sequencer)
        await made.start(sequencer)
        await reach(made, b"after", 0, 1)
        assert not made.failures()
        for live in made.hosts.values():
            await live.stop()

    run(main())


def test_state_is_set_aside_and_never_removed(tmp_path: Path) -> None:
    path = tmp_path / "3.sqlite"
    assert set_aside(path) is None
    contents = []
    for number in (1, 2):
        store = Store(path, as_new=number > 1)
        store.commit({(0, "place"): b"%d" % number})
        store.close()
        contents.append(path.read_bytes())
        assert set_aside(path) == tmp_path / f"3.aside-{number}"
        assert not path.exists()
    for number, content in enumerate(contents, 1):
        folder = tmp_path / f"3.aside-{number}"
        assert (folder / "3.sqlite").read_bytes() == content
        assert (folder / "3.mark").exists()


def test_damaged_state_is_set_aside_too(tmp_path: Path) -> None:
    path = tmp_path / "3.sqlite"
    Store(path).close()
    path.write_bytes(b"nothing of the kind")
    folder = set_aside(path)
    assert folder is not None
    assert (folder / "3.sqlite").read_bytes() == b"nothing of the kind"
    assert Store(path, as_new=True).as_new


def test_state_that_a_host_has_open_is_not_set_aside(tmp_path: Path) -> None:
    path = tmp_path / "3.sqlite"
    store = Store(path)
    with pytest.raises(HostTaken):
        set_aside(path, wait_s=0.1)
    store.close()
    assert path.exists()


def test_a_new_member_uses_no_identity_of_its_earlier_life(tmp_path: Path) -> None:
    async def main() -> None:
        made = DiskLab(hydra_plan(receivers=1, sequencers=1), tmp_path)
        made.as_new.add(0)
        sender = made.plan.senders[0]
        await made.start(0)
        first = made.submit(sender, b"one")
        await made.stop(0)
        await made.start(0)
        second = made.submit(sender, b"two")
        assert first % (1 << 40) >= 1 << 39
        assert second == first + 1
        await made.stop(0)
        made.lose_disk(0)
        await asyncio.sleep(1.1)
        await made.start(0)
        third = made.submit(sender, b"three")
        assert third > second
        await made.stop(0)

    run(main())
