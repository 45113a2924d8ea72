"""Applications that send from within the loop in which they receive: they never wait for themselves."""

import asyncio
import threading
from pathlib import Path

import pytest

from ordercast.core import SECOND
from ordercast.net.api.group import Group
from ordercast.net.api.received import Received
from ordercast.net.api.sync_group import join_sync
from ordercast.net.host import senders
from tests.live.cluster_files import write_cluster
from tests.live.live_lab import Lab, hydra_plan, lab, run
from tests.live.processes import PATIENCE_S

SOFT = 64 << 10
REQUESTS = 400
BODY = bytes(1_000)


async def answer(group: Group, wanted: int) -> int:
    """Answer each request with more bytes than it has; how many messages came, until all have."""
    taken = 0
    async for delivery in group:
        if isinstance(delivery, Received):
            taken += 1
            if delivery.payload[:1] == b"?":
                await group.send(b"!" + 4 * BODY)
        if taken == wanted:
            break
    return taken


def test_members_that_answer_all_requests_of_a_flood_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(senders, "BACKLOG_BYTES_MAX", SOFT)

    async def main() -> None:
        # Every message is counted: a slow sequencer must not be removed, nor a late message be given up.
        plan = hydra_plan(3, 1, suspect_ns=10 * SECOND, patience_ns=30 * SECOND, hold_ns=30 * SECOND)
        async with lab(Lab(plan, datagram_max=8_000)) as made:
            groups = []
            for index, receiver in enumerate(plan.groups[0]):
                group = Group(made.hosts[index], ["orders"], 0, plan.senders[index], receiver, SOFT)
                made.hosts[index].add_listener(receiver, group._inbox.put)
                groups.append(group)
            wanted = REQUESTS * (1 + len(groups))
            answering = [asyncio.create_task(answer(group, wanted)) for group in groups]
            for _ in range(REQUESTS // 10):
                await groups[0].send_many([b"?" + BODY] * 10)
            async with asyncio.timeout(PATIENCE_S):
                assert await asyncio.gather(*answering) == [wanted] * len(groups)

    run(main())


def test_a_script_that_answers_is_urgent_only_in_the_thread_that_takes(tmp_path: Path) -> None:
    file = write_cluster(tmp_path)
    with join_sync(file, "orders", host=0) as group:
        assert group.receive(timeout=0.01) is None
        assert group._takers == {threading.get_ident()}
