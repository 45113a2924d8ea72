"""The tables of the pipeline, column by column: what each step takes and gives.

A *run* is named as its trace folder is, and the name is unique within a sweep. `parameters` is a JSON object
with what the sweep varied, so that one schema serves all sweeps.
"""

from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)


def _table(*columns: tuple[str, DataType], required: tuple[str, ...] = ()) -> StructType:
    """A schema from names and types; the columns named in `required` are never null."""
    return StructType([StructField(name, kind, name not in required) for name, kind in columns])


_INTS, _LONGS = ArrayType(IntegerType(), False), ArrayType(LongType(), False)

SCENARIOS = _table(
    ("place", LongType()),  # the row's place in the sweep: tables are sorted by it
    ("run", StringType()),
    ("protocol", StringType()),
    ("seed", LongType()),
    ("parameters", StringType()),
    ("scenario", StringType()),  # the whole scenario, as JSON
    required=("place", "run", "protocol", "seed", "parameters", "scenario"),
)

RUNS = _table(
    ("place", LongType()),
    ("run", StringType()),
    ("protocol", StringType()),
    ("seed", LongType()),
    ("parameters", StringType()),
    ("status", StringType()),  # kept, violated, or failed (then `error` says how, and the rest is null)
    ("error", StringType()),
    ("folder", StringType()),  # of the trace, relative to the sweep's own
    ("trace_hash", StringType()),
    ("events", LongType()),
    ("submitted", LongType()),
    ("delivered", LongType()),
    ("dropped", LongType()),
    ("complete", BooleanType()),
    ("ending", StringType()),
    ("duration_ns", LongType()),
    ("packets_lost", LongType()),
    ("overflowed", LongType()),
    ("refused", LongType()),
    ("timed_out", LongType()),
    required=("place", "run", "protocol", "seed", "parameters", "status"),
)

FINDING = _table(
    ("property", StringType()),
    ("nodes", _INTS),
    ("messages", _LONGS),
    ("times_ns", _LONGS),
    ("detail", StringType()),
    ("step", LongType()),
    required=("property", "nodes", "messages", "times_ns", "detail", "step"),
)

VIOLATIONS = _table(
    ("run", StringType()),
    ("protocol", StringType()),
    ("seed", LongType()),
    ("judge", StringType()),  # oracles (event by event) or columns (vectorised)
    *((field.name, field.dataType) for field in FINDING),
    required=("run", "protocol", "judge", *FINDING.names),
)

TRACES = _table(
    ("run", StringType()),
    ("folder", StringType()),  # absolute
    ("protocol", StringType()),
    ("seed", LongType()),
    ("source", StringType()),
    ("complete", BooleanType()),
    ("events", LongType()),
    required=("run", "folder", "protocol", "source", "complete", "events"),
)

VERDICTS = _table(
    ("run", StringType()),
    ("folder", StringType()),
    ("protocol", StringType()),
    ("seed", LongType()),
    ("complete", BooleanType()),
    ("events", LongType()),
    ("deliveries", LongType()),
    ("findings", ArrayType(FINDING, False)),
    ("suppressed", MapType(StringType(), LongType(), False)),
    ("error", StringType()),  # why the trace could not be judged; null if it was
    required=("run", "folder", "protocol", "complete", "findings", "suppressed"),
)

DELIVERIES = _table(
    ("run", StringType()),
    ("node", IntegerType()),
    ("position", LongType()),  # null if it was delivered out of order
    ("message", LongType()),
    ("time_ns", LongType()),
    ("submitted_ns", LongType()),
    required=("run", "node", "message", "time_ns", "submitted_ns"),
)
