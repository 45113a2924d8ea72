"""How a host ends when it cannot keep what it must: at once, and letting go of everything."""

import asyncio
from collections.abc import Mapping

import pytest

from ordercast.core import HostId, LocalError, NodeId, Plan
from ordercast.net.host import identities
from ordercast.net.host.identities import OURS
from ordercast.net.host.store import Store
from tests.live.live_lab import Lab, hydra_plan, run
from tests.live.wires import until


class FullDisk(Store):
    """A store whose disk has no room any more, from some time on."""

    full = False
    closed = False

    def commit(self, saves: Mapping[tuple[NodeId, str], bytes | None]) -> None:
        if self.full:
            raise LocalError("no space left on device")
        super().commit(saves)

    def close(self) -> None:
        self.closed = True
        super().close()


class FullDiskLab(Lab):
    """Hosts whose disks a test can fill."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        self.disks: dict[HostId, FullDisk] = {}

    def store(self, host: HostId) -> Store:
        self.disks[host] = FullDisk(None)
        return self.disks[host]


def test_a_host_that_cannot_make_its_state_durable_stops_and_lets_go_of_everything(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(identities, "RESERVED", 10)

    async def main() -> None:
        made = FullDiskLab(hydra_plan(receivers=1, sequencers=1))
        for host in made.ids:
            await made.start(host)
        live, disk = made.hosts.pop(0), made.disks[0]
        told: list[BaseException] = []
        complaints: list[object] = []
        live.on_failure(told.append)
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: complaints.append(context))
        disk.full = True
        assert live.submit(made.plan.senders[0], (0,), [b"needs more identities"] * 20) is not None
        await until(lambda: live.failure is not None)
        packets = live.metrics.packets_out
        assert [str(error) for error in told] == ["no space left on device"]
        assert not live.running
        assert live.submit(made.plan.senders[0], (0,), [b"too late"]) is None
        live.wire.outbox.send((made.ids[1],), 0, b"\0\0\0\0", 1, b"what a handler had begun to say")
        await live.stop()
        assert live.metrics.packets_out == packets, "what could not be kept does not leave"
        assert disk.closed
        assert not complaints
        again = await made.start(0)  # the address is free again
        await again.stop()
        del made.hosts[0]
        for other in made.hosts.values():
            await other.stop()

    run(main())


@pytest.mark.parametrize("name", ["second", "wire"])
def test_an_error_in_the_hosts_own_work_stops_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        made = Lab(hydra_plan(receivers=1, sequencers=1))
        live = await made.start(0)

        def fail() -> None:
            raise ValueError("a defect")

        monkeypatch.setattr(live.wire, "tick", fail) if name == "wire" else live.each_second(fail)
        live._on_timer(OURS, name)
        assert isinstance(live.failure, ValueError)
        await live.stop()

    run(main())
