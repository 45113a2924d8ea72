"""A running cluster with a stranger on its network: what is ordered stays ordered, and nothing is made up."""

import asyncio
from collections import Counter
from random import Random

import pytest

from ordercast.core import HostId
from tests.live.live_lab import Lab, hydra_plan, lab, run
from tests.live.proxy import Mood, Proxy
from tests.live.wire_pairs import KEYS, OTHER_KEYS
from tests.live.wires import until

BOTH = pytest.mark.parametrize("keys", [KEYS, None], ids=["sealed", "plaintext"])


async def talk(made: Lab, rounds: int, name: bytes = b"message", pause_s: float = 0.002) -> set[bytes]:
    """Let every sender send a message in each round; what was sent."""
    sent: set[bytes] = set()
    for number in range(rounds):
        for sender in made.plan.senders:
            payload = b"%s %d of sender %d" % (name, number, sender)
            made.submit(sender, payload)
            sent.add(payload)
        await asyncio.sleep(pause_s)
    return sent


async def settle(
    made: Lab, name: bytes, sender: int = 0, receivers: tuple[int, ...] = (0, 1, 2)
) -> set[bytes]:
    """Send until each of these receivers has been delivered something new; what was sent.

    Hydra may lose messages on a busy machine, and says so. What came before is then delivered or lost.
    """
    sent: set[bytes] = set()
    for number in range(400):
        sent.add(payload := b"%s %d" % (name, number))
        made.submit(made.plan.senders[sender], payload)
        await asyncio.sleep(0.05)
        if all(sent & set(made.payloads(node)) for node in receivers):
            return sent
    raise AssertionError("nothing is delivered any more")


async def at_rest(made: Lab) -> dict[int, list[bytes]]:
    """What receivers have been delivered when nothing more comes."""
    before: dict[int, list[bytes]] = {}
    while (now := {node: made.payloads(node) for node in made.heard}) != before:
        before = now
        await asyncio.sleep(0.5)
    return now


def assert_ordered(made: Lab, sent: set[bytes]) -> None:
    """Nothing twice, nothing made up, and the same order wherever two messages are at two receivers."""
    orders = [made.payloads(node) for node in made.heard]
    for order in orders:
        assert max(Counter(order).values(), default=1) == 1
        assert set(order) <= sent
    for one in orders:
        for other in orders:
            common = set(one) & set(other)
            assert [p for p in one if p in common] == [p for p in other if p in common]


@pytest.mark.parametrize(
    "mood",
    [
        Mood(loss=0.02),
        Mood(duplication=0.2, reordering=0.1),
        Mood(corruption=0.05),
        Mood(replay=0.5),
        Mood(loss=0.01, duplication=0.1, reordering=0.1, corruption=0.01, replay=0.1),
    ],
    ids=["loss", "copies", "flipped bits", "replays", "all of it"],
)
def test_whatever_a_stranger_does_to_datagrams_the_order_holds(mood: Mood) -> None:
    async def main() -> None:
        made = Lab(hydra_plan())
        async with Proxy(made.addresses, Random(5)) as proxy:
            made.seen_by = proxy.addresses_seen_by
            async with lab(made):
                sent = await settle(made, b"begin")
                proxy.mood = mood
                sent |= await talk(made, 200)
                proxy.mood = Mood()
                sent |= await settle(made, b"end")
                assert_ordered(made, sent)
                assert made.failures() == []
                assert made.count("malformed") == 0
                copies = made.count("rejected_replay")
                if mood.replay or mood.duplication:
                    assert copies > 0
                elif not mood.corruption:  # a flipped bit of its counter makes a datagram look like a copy
                    assert copies == 0
                broken = sum(made.count(f"rejected_{part}") for part in ("version", "key", "source", "seal"))
                assert (broken > 0) == bool(mood.corruption)

    run(main())


@BOTH
def test_ten_thousand_random_datagrams_to_every_host_change_nothing(keys: object) -> None:
    async def main() -> None:
        made = Lab(hydra_plan(), keys=KEYS if keys else None)
        async with Proxy(made.addresses, Random(5)) as proxy:
            made.seen_by = proxy.addresses_seen_by
            async with lab(made):
                sent = await settle(made, b"begin")
                rng = Random(11)
                for number in range(10_000):
                    proxy.inject(made.ids[number % len(made.ids)], rng.randbytes(rng.randrange(1, 1_400)))
                    if number % 100 == 99:
                        await asyncio.sleep(0.002)
                await until(lambda: made.count("rejected") >= 10_000)
                sent |= await settle(made, b"end")
                assert_ordered(made, sent)
                assert made.count("rejected") == 10_000
                assert made.failures() == []

    run(main())


def test_a_host_with_another_key_is_not_part_of_the_cluster() -> None:
    async def main() -> None:
        made = Lab(hydra_plan())
        async with lab(made):
            await made.stop(2)
            stranger = await made.start(2, OTHER_KEYS)
            for number in range(20):
                made.submit(made.plan.senders[2], b"from outside %d" % number)
                await asyncio.sleep(0.005)
            sent = await settle(made, b"from inside", receivers=(0, 1))
            assert set(made.payloads(0)) | set(made.payloads(1)) <= sent
            assert made.payloads(2) == []
            assert made.count("rejected_key") == made.count("rejected") > 0
            assert stranger.metrics.rejected_key > 0
            assert made.failures() == []

    run(main())


@pytest.mark.parametrize("restarted", [0, 3], ids=["receiver and sender", "sequencer"])
def test_recordings_played_to_a_restarted_host_are_not_delivered(restarted: int) -> None:
    async def main() -> None:
        made = Lab(hydra_plan(repair=False))  # nobody but the recordings brings back what was delivered
        host: HostId = made.ids[restarted]
        async with Proxy(made.addresses, Random(5)) as proxy:
            made.seen_by = proxy.addresses_seen_by
            async with lab(made):
                await settle(made, b"begin")
                await talk(made, 50)
                await settle(made, b"end")
                delivered = await at_rest(made)
                await made.stop(host)
                await made.start(host)
                recorded = 0
                for _ in range(3):
                    recorded += proxy.replay(host)
                    await asyncio.sleep(0.1)
                assert recorded > 100
                for node, before in delivered.items():
                    assert made.payloads(node) == ([] if made.plan.nodes[node].host == host else before)
                assert made.failures() == []

    run(main())
