"""Large traces for benchmarks: what an ordered run leaves, made by arrays instead of a simulation.

Every message is submitted by one of four senders, stamped, and delivered in stamp order by every receiver
of one group, each with delays of its own; the rows of all nodes stand in order of time. All columns are
filled that a simulated run of an ordering protocol fills.
"""

from pathlib import Path

import numpy as np
import pyarrow as pa

from ordercast.core import MICROSECOND, Agreement, Causality, Gaps, Guarantees, Order
from ordercast.trace import Kind, NodeDescription, RunDescription, write_run
from ordercast.trace.table import SCHEMA

RECEIVERS = 5
SENDERS = 4
PROMISED = Guarantees(
    order=Order.ACROSS,
    agreement=Agreement.ALL,
    uniform=True,
    validity=True,
    causality=Causality.FIFO,
    gaps=Gaps.NEVER,
)


def write_trace(folder: Path, name: str, deliveries: int, seed: int) -> None:
    """A run with so many deliveries at all receivers together, in a folder of its own."""
    description = RunDescription(
        run=name,
        source="simulator",
        protocol="atomic_multicast",
        seed=seed,
        guarantees=PROMISED,
        nodes=tuple(
            NodeDescription(node, "receiver" if node < RECEIVERS else "sender", node)
            for node in range(RECEIVERS + SENDERS)
        ),
        groups={0: tuple(range(RECEIVERS))},
        complete=True,
    )
    write_run(folder / name, description, make_table(name, deliveries // RECEIVERS, seed))


def make_table(name: str, messages: int, seed: int) -> pa.Table:
    """The events of a run with so many messages."""
    rng = np.random.default_rng(seed)
    submitted = np.cumsum(rng.integers(1, 20, messages)) * MICROSECOND
    sender = RECEIVERS + rng.integers(0, SENDERS, messages)
    number = np.empty(messages, np.int64)
    for node in range(RECEIVERS, RECEIVERS + SENDERS):
        mine = sender == node
        number[mine] = np.arange(np.count_nonzero(mine))
    message = (sender << 40) + number
    digest = rng.integers(0, 1 << 32, messages)
    delivered = [
        np.maximum.accumulate(submitted + rng.integers(100, 900, messages) * MICROSECOND)
        for _ in range(RECEIVERS)
    ]
    times = np.concatenate([submitted, *delivered])
    order = np.argsort(times, kind="stable")
    which = np.tile(np.arange(messages), RECEIVERS + 1)[order]
    is_submit = order < messages
    times = times[order]
    receiver = order // messages - 1
    nodes = np.where(is_submit, sender[which], receiver)
    position = np.where(is_submit, 0, which)
    step = np.where(is_submit, number[which], which)
    return pa.Table.from_arrays(
        [
            pa.DictionaryArray.from_arrays(pa.array(np.zeros(len(order), np.int32)), [name]),
            pa.array(step),
            pa.array(position, mask=is_submit),
            pa.array(times),
            pa.array(times),
            pa.array(nodes, pa.int32()),
            pa.DictionaryArray.from_arrays(
                pa.array(is_submit.astype(np.int8)), [str(Kind.DELIVER), str(Kind.SUBMIT)]
            ),
            pa.array(message[which]),
            pa.ListArray.from_arrays(
                np.arange(len(order) + 1, dtype=np.int32), pa.array(np.zeros(len(order), np.int32))
            ),
            pa.nulls(len(order), pa.list_(pa.int64())),
            pa.array(submitted[which]),
            pa.array(which + 1, pa.int64(), mask=is_submit),
            pa.array(np.zeros(len(order), np.int64), mask=is_submit),
            pa.array(np.zeros(len(order), np.int64), mask=is_submit),
            pa.nulls(len(order), pa.list_(pa.int32())),
            pa.array(sender[which], pa.int32(), mask=is_submit),
            pa.array(np.full(len(order), 64), pa.int32()),
            pa.array(digest[which]),
            pa.nulls(len(order), pa.dictionary(pa.int32(), pa.string())),
        ],
        schema=SCHEMA,
    )
