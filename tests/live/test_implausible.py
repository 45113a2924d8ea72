"""What a member claims and cannot be: counted at a live host, shown by `top`, and nothing has changed."""

import asyncio

from ordercast.cli.top import measure, row_cells
from ordercast.components.consensus.messages import Accept
from ordercast.core import Message
from ordercast.protocols.atomic_multicast.messages import Final
from tests.live.live_lab import Lab, lab, run
from tests.live.test_message_fuzz import plan_of
from tests.live.wires import until

LIES: tuple[Message, ...] = (
    Accept(0, 2**62, b"far", 0),
    Accept(2**63 - 1 - (2**63 - 1) % 3, 0, b"the last ballot", 0),
    Final(3, 0, 0, 2**62, 0),
)


def test_implausible_messages_are_counted_shown_by_top_and_change_nothing() -> None:
    async def main() -> None:
        made = Lab(plan_of("atomic_multicast"))
        async with lab(made):
            host = made.hosts[1]
            before = host.metrics.snapshot()
            for lie in LIES:
                host._nodes.on_frame(0, 0, (1,), made.plan.codec.encode(lie))
            host.end_turn()
            assert (host.metrics.implausible, host.metrics.malformed) == (3, 0)
            row = measure(1, "receiver", before, host.metrics.snapshot())
            assert row.refused == 3
            assert str(row_cells(row)["refused"]) == "3"
            made.submit(made.plan.senders[0], b"goes on")
            await until(lambda: all(made.heard[node] for node in range(3)))
            await asyncio.sleep(0)
            assert made.failures() == []

    run(main())
