"""What it costs a live host to record what it does, and to make Parquet of it.

Run: ``python -m benchmarks.spool``. CPU time, the best of some rounds: others may use the machine.
"""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from ordercast.core import Delivered, Stamp, message_id
from ordercast.core.bundle import Bundle
from ordercast.net.host.recording.recorder import TraceRecorder
from ordercast.net.host.recording.spool import Spooler
from ordercast.net.host.recording.spool_file import SpoolHeader
from ordercast.net.host.recording.spool_to_parquet import spool_folder, turn_all

ROUNDS = 7
MESSAGES = 20_000
A_TURN = 8
"""Bundles between two flushes."""


def main() -> None:
    for count, size in ((1, 64), (20, 64), (200, 64), (900, 64), (50, 1024)):
        with tempfile.TemporaryDirectory() as folder:
            record_ns = recording_ns(Path(folder), count, size)
        with tempfile.TemporaryDirectory() as folder:
            turn_ns = turning_ns(Path(folder), count, size)
        each = f"{record_ns / 1000:6.2f} us a record, {record_ns / count / 1000:5.3f} us a message"
        print(f"{count:4} messages of {size:4} bytes: {each}; turned: {turn_ns / 1000:5.3f} us a message")


def bundle_of(count: int, size: int) -> tuple[Delivered, Bundle]:
    payloads = [bytes([index % 256]) * size for index in range(count)]
    return Delivered(b"", (0,), 3, Stamp(10**9, 1, (7,)), 2), Bundle(message_id(3, 0), (5,) * count, payloads)


def fill(recorder: Spooler, count: int, size: int, records: int) -> Callable[[], None]:
    delivery, bundle = bundle_of(count, size)

    def record() -> None:
        for index in range(records):
            recorder.delivered(7, 1, delivery, bundle)
            if index % A_TURN == 0:
                recorder.flush()

    return record


def recording_ns(folder: Path, count: int, size: int) -> float:
    header = SpoolHeader(run="benchmark", host=0, life=0, number=0, nodes=(0, 1))
    recorder = Spooler(folder, header, bytes_max=1 << 40, age_max_ns=1 << 62, closed=lambda: None)
    recorder.begin(1, saved=False)
    records = MESSAGES // count + 500
    record = fill(recorder, count, size, records)
    best = min(cpu_ns(record) for _ in range(ROUNDS))
    recorder.close()
    return best / records


def turning_ns(folder: Path, count: int, size: int) -> float:
    best = float("inf")
    records = 10 * MESSAGES // count
    for number in range(ROUNDS):
        recorder = TraceRecorder(folder, f"run-{number}", 0, (0, 1), bytes_max=1 << 40)
        recorder.begin(1, saved=False)
        fill(recorder, count, size, records)()
        recorder.close()
        spools = spool_folder(folder / f"run-{number}")
        best = min(best, cpu_ns(lambda spools=spools: turn_all(spools, 0)))  # type: ignore[misc]
    return best / (records * count)


def cpu_ns(action: Callable[[], object]) -> int:
    before = time.process_time_ns()
    action()
    return time.process_time_ns() - before


if __name__ == "__main__":
    main()
