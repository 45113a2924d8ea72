"""PySyncObj, a Raft log in pure Python: every receiver is a member, and an applied command is a delivery.

Commands are appended in the process of the leader, which spares them a hop; the first member stands for
election long before the others. By default entries are sent ten times a second and a client waits for them;
here every millisecond, and for a client alone at once (without batching). The members are driven by our own
loop rather than by the thread that the package offers. The log is in memory and is not compacted during a
measurement.

A leader that has more than one batch under way sends some entries again, and followers then complain that
they cut what they had applied, at periods of 1, 5 and 20 ms alike. The complaints are silenced; what
they would mean, a different order or a repeated message, is counted from what the members delivered.

Clients that are tasks give a callback with each command, and one more task drives the member in their event
loop. In one short try that gave 14,700 messages a second; callbacks from a thread that drives the member gave
10,500, and blocking calls through `run_in_executor`, a thread a client, 5,900.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.peers.client_tasks import ClientTasks, run_in_loop
from benchmarks.peers.contender import Peer, Ports
from benchmarks.peers.roles import Clients, Flow, Recorder, Rounds, wait_until_received
from benchmarks.peers.stage import free_ports

BATCH = 50
READY_S = 20.0
TICK_S = 0.001
FOLLOWER_TICK_S = 0.05
ENTRIES_S = 0.001
NEVER = 1_000_000_000


class PySyncObj(Peer):
    """As many members as receivers."""

    name, title = "pysyncobj", "PySyncObj (Raft), all members"
    packages = (("pysyncobj", "pysyncobj"),)
    window = 2_000
    publishes_inside = True

    @contextmanager
    def serve(self, folder: Path, receivers: int) -> Iterator[Ports]:
        """Only ports."""
        yield free_ports(receivers)

    def receive(self, ports: Ports, recorder: Recorder) -> None:
        """Be a member that follows."""
        heard: list[bytes] = []
        member = make_member(ports, recorder.index, heard.append, batches=True)
        while not recorder.finished:
            member.doTick(FOLLOWER_TICK_S)
            if member.isReady():
                recorder.ready()
            if heard:
                recorder.heard(heard)
                heard.clear()

    def publish(self, ports: Ports, flow: Flow, inside: Recorder | None) -> None:
        """Be the member that leads, and append while the window has room."""
        assert inside is not None, "the publisher is a member"
        heard: list[bytes] = []
        member = make_member(ports, 0, heard.append, batches=True)
        become_leader(member, inside, flow)
        flow.begin()
        while not inside.finished:
            if flow.over:
                flow.finish()
                payloads = []
            else:
                payloads = flow.take(BATCH)
            for payload in payloads:
                member.deliver(payload)
            member.doTick(0 if payloads else TICK_S)
            if heard:
                inside.heard(heard)
                heard.clear()
        for _ in wait_until_received(flow.shared):
            member.doTick(0)  # followers learn what is committed from the next message of the leader

    def run_clients(self, ports: Ports, clients: Clients) -> None:
        """Be the member that leads; rounds end when it applies their commands."""
        heard: list[bytes] = []
        member = make_member(ports, 0, heard.append, batches=clients.count > 1)
        become_leader(member, clients.recorder, clients)
        payloads = clients.first()
        while not clients.finished:
            for payload in payloads:
                member.deliver(payload)
            member.doTick(TICK_S)
            payloads = clients.heard(heard) if heard else []
            heard.clear()
        for _ in wait_until_received(clients.shared):
            member.doTick(0)

    def run_tasks(self, ports: Ports, clients: ClientTasks) -> None:
        """Be the member that leads; tasks append, and go on when their commands are applied."""
        run_in_loop(self._run_tasks(ports, clients))

    async def _run_tasks(self, ports: Ports, clients: ClientTasks) -> None:
        loop = asyncio.get_running_loop()
        member = make_member(ports, 0, lambda payload: clients.heard([payload]), batches=clients.count > 1)
        become_leader(member, clients.recorder, clients)

        async def send(payload: bytes) -> None:
            applied: asyncio.Future[object] = loop.create_future()
            member.deliver(payload, callback=lambda _, error: settle(applied, error))
            await applied

        await clients.run(send, tick(member))
        for _ in wait_until_received(clients.shared):
            member.doTick(0)


def settle(applied: "asyncio.Future[object]", error: object) -> None:
    """A command was applied or refused; its task may have been ended meanwhile."""
    if not applied.done():
        applied.set_result(error)


async def tick(member: Any) -> None:
    """Drive the member; while it waits for others, tasks have nothing to do either."""
    while True:
        member.doTick(TICK_S)
        await asyncio.sleep(0)


def make_member(ports: Ports, index: int, deliver: Callable[[bytes], None], *, batches: bool) -> Any:
    """A member of the cluster that hands over what it applies."""
    from pysyncobj import SyncObj, SyncObjConf, replicated

    class Member(SyncObj):  # type: ignore[misc]  # the package ships no types
        @replicated  # type: ignore[untyped-decorator]
        def deliver(self, payload: bytes) -> None:
            deliver(payload)

    logging.getLogger("pysyncobj").setLevel(logging.CRITICAL + 1)
    addresses = [f"127.0.0.1:{port}" for port in ports]
    patience_s = 0.3 if index == 0 else 5.0
    conf = SyncObjConf(
        autoTick=False,
        appendEntriesPeriod=ENTRIES_S,
        appendEntriesUseBatch=batches,
        raftMinTimeout=patience_s,
        raftMaxTimeout=patience_s + 0.2,
        connectionTimeout=10.0,
        connectionRetryTime=0.05,
        logCompactionMinEntries=NEVER,
        logCompactionMinTime=NEVER,
    )
    return Member(addresses[index], addresses[:index] + addresses[index + 1 :], conf)


def become_leader(member: Any, recorder: Recorder, source: Flow | Rounds) -> None:
    """Tick until this member leads and all are ready."""
    deadline = time.monotonic() + READY_S
    while not source.shared.all_ready:
        if time.monotonic() > deadline:
            raise TimeoutError(f"no cluster after {READY_S:.0f} s")
        member.doTick(TICK_S)
        if member.isReady() and member._isLeader():
            recorder.ready()
