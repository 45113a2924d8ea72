"""A sweep on a cluster, as a program of its own: a process has one Spark, and the tests use it."""

import json
import sys
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pyarrow as pa

from ordercast.pipeline.session import running_spark
from ordercast.pipeline.sweep import outcome_of, run_sweep
from ordercast.pipeline.sweep_file import load_sweep
from ordercast.pipeline.traces import traces
from ordercast.pipeline.verify import judge_all, verify


def look_around(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Where an executor has the package from, and what it finds in there."""
    import ordercast
    from ordercast.catalogue import find_protocol, protocol_names

    for _ in batches:
        protocols = [find_protocol(name).name for name in protocol_names()]
        data = files("ordercast.pipeline").joinpath("log4j2.properties").read_bytes()
        row = {
            "file": ordercast.__file__,
            "protocols": protocols,
            "data": len(data),
            "folder": str(Path.cwd()),
        }
        yield pa.RecordBatch.from_pylist([row])


def main(master: str, file: str, out: str) -> None:
    with running_spark(master, "ordercast-tests", quick=True) as spark:
        schema = "file string, protocols array<string>, data long, folder string"
        frame = spark.range(0, 4, 1, 4).mapInArrow(look_around, schema)
        seen = [row.asDict() for row in frame.collect()]
        outcome = outcome_of(run_sweep(spark, load_sweep(Path(file)), Path(out)))
        found = traces(spark, Path(out) / "traces")
        # Every run as a small one, and once more cut into parts.
        verdicts = [*judge_all(found), *verify(found, whole_max=0, part_rows=100).collect()]
    judged = [[row["run"], len(row["findings"]), row["error"]] for row in verdicts]
    print(json.dumps({"seen": seen, "protocols": outcome.protocols, "judged": judged}))


if __name__ == "__main__":
    main(*sys.argv[1:])
