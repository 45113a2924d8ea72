"""What a packet costs a Hydra receiver, with 2, 8 and 32 sequencers, against a bare merge of the packets.

Sequencers take turns at random, clocks grow, nothing is lost. The receiver gets every packet through
`on_message` and delivers it into a list. The yardstick is `heapq.merge` over the streams of all sequencers,
which knows all packets beforehand, makes the same deliveries, and checks nothing: the least that any merge in
Python does. Both take turns; the ratio is the median of the rounds: machines are noisy.

The claim to look at is the growth: O(log M) means that 32 sequencers cost at most 5 times what 2 cost.

    python -m benchmarks.hydra [--packets N] [--rounds N] [--json]
"""

import argparse
import gc
import heapq
import json
import time
from collections.abc import Callable, Sequence
from operator import attrgetter
from random import Random
from statistics import median

from ordercast.core import Delivered, Delivery, Env, Message, Nanos, NodeId, Stamp
from ordercast.protocols.hydra.messages import Groupcast
from ordercast.protocols.hydra.options import HydraOptions
from ordercast.protocols.hydra.receiver import Receiver

SEQUENCERS = (2, 8, 32)
PAYLOAD = bytes(64)


class ListEnv(Env):
    """Delivers into a list, and lets everything else go."""

    def __init__(self) -> None:
        self.me, self.now, self.rng = 0, 0, Random(0)
        self.delivered: list[Delivery] = []

    def send(self, to: NodeId, message: Message) -> None:
        """Nobody is there."""

    def multicast(self, to: Sequence[NodeId], message: Message) -> None:
        """Nobody is there."""

    def set_timer(self, name: str, after: Nanos) -> None:
        """No timer goes off."""

    def cancel_timer(self, name: str) -> None:
        """No timer goes off."""

    def deliver(self, delivery: Delivery) -> None:
        """Keep it."""
        self.delivered.append(delivery)

    def save(self, name: str, state: bytes | None) -> None:
        """Nothing is kept."""


def packets_of(sequencers: int, count: int) -> list[Groupcast]:
    """Packets of all sequencers as they come: in order of their clocks, in random turns."""
    rng = Random(1)
    numbers = [0] * (sequencers + 1)
    packets = []
    for clock in range(1, count + 1):
        sequencer = rng.randint(1, sequencers)
        numbers[sequencer] += 1
        packets.append(Groupcast(sequencer, clock, (0,), (numbers[sequencer],), 3, PAYLOAD))
    return packets


def receive(packets: list[Groupcast], sequencers: int) -> list[Delivery]:
    """Through a receiver."""
    env = ListEnv()
    nodes = {sequencer: sequencer + 10 for sequencer in range(1, sequencers + 1)}
    receiver = Receiver(env, 0, {0: (0, 1, 2)}, nodes, (5,), None, HydraOptions())
    receiver.on_start({})
    handle = receiver.on_message
    for packet in packets:
        env.now += 1000
        handle(11, packet)
    return env.delivered


def merge(packets: list[Groupcast], sequencers: int) -> list[Delivery]:
    """The yardstick."""
    streams: list[list[Groupcast]] = [[] for _ in range(sequencers + 1)]
    for packet in packets:
        streams[packet.sequencer].append(packet)
    return [
        Delivered(
            packet.payload,
            packet.groups,
            packet.sender,
            Stamp(packet.clock, packet.sequencer, packet.numbers),
        )
        for packet in heapq.merge(*streams, key=attrgetter("clock", "sequencer"))
    ]


def seconds(work: Callable[[], list[Delivery]]) -> float:
    """How long it takes, without the garbage collector."""
    gc.collect()
    gc.disable()
    start = time.perf_counter()
    work()
    took = time.perf_counter() - start
    gc.enable()
    return took


def measure(count: int, rounds: int) -> dict[str, dict[str, float]]:
    """Nanoseconds a packet of the best round, and the median ratio to the yardstick, by sequencers."""
    table: dict[str, dict[str, float]] = {}
    for sequencers in SEQUENCERS:
        packets = packets_of(sequencers, count)
        delivered = receive(packets, sequencers)
        if delivered != merge(packets, sequencers)[: len(delivered)] or len(delivered) < count * 0.99:
            raise SystemExit("the receiver does not deliver what the merge does")
        ours, bare = [], []
        for _ in range(rounds):
            ours.append(seconds(lambda: receive(packets, sequencers)))  # noqa: B023  (used at once)
            bare.append(seconds(lambda: merge(packets, sequencers)))  # noqa: B023
        table[str(sequencers)] = {
            "ns_a_packet": round(min(ours) / count * 1e9),
            "ratio_to_merge": round(median(a / b for a, b in zip(ours, bare, strict=True)), 2),
        }
    least = table[str(SEQUENCERS[0])]["ns_a_packet"]
    for row in table.values():
        row["ratio_to_2_sequencers"] = round(row["ns_a_packet"] / least, 2)
    return table


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--packets", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    table = measure(arguments.packets, arguments.rounds)
    if arguments.json:
        print(json.dumps(table, indent=2))
        return
    print("sequencers  ns a packet  against 2 sequencers  against a bare merge")
    for sequencers, row in table.items():
        print(
            f"{sequencers:>10}  {row['ns_a_packet']:>11.0f}  {row['ratio_to_2_sequencers']:>20}"
            f"  {row['ratio_to_merge']:>20}"
        )


if __name__ == "__main__":
    main()
