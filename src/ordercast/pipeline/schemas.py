"""The tables of the pipeline, column by column: the input and output of each step.

A *run* has the name of its trace folder, which is unique within a sweep. `parameters` is a JSON object with
the varied keys of the sweep, so that one schema serves all sweeps. Times count from the start of the run: 0
in a simulation, the first event if hosts read real clocks.
"""

from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DoubleType,
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
    ("source", StringType()),  # the source in the trace's description; null if there is no trace
    ("seed", LongType()),  # null for a live run, which cannot be repeated exactly
    ("parameters", StringType()),
    ("status", StringType()),  # kept, violated, or failed (then `error` says how, and the rest is null)
    ("error", StringType()),
    ("folder", StringType()),  # of the trace, relative to the folder that the tables are about
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
    ("answered", LongType()),  # operations of a service; null if the run has none
    ("unknown", LongType()),  # operations whose clients were told that the outcome is unknown
    ("start_ns", LongType()),  # the clock reading at time 0, if clocks were real
    required=("place", "run", "protocol", "parameters", "status"),
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

HOLES = _table(
    ("node", IntegerType()),
    ("standing", StringType()),
    ("count", LongType()),
    ("messages", _LONGS),
    required=("node", "standing", "count", "messages"),
)

VIOLATIONS = _table(
    ("run", StringType()),
    ("protocol", StringType()),
    ("seed", LongType()),
    ("judge", StringType()),  # who found it: a sweep has the oracles' findings here, the others in VERDICTS
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
    ("start_ns", LongType()),  # the start of its times: 0, or its first event if clocks were real
    required=("run", "folder", "protocol", "source", "complete", "events", "start_ns"),
)

NODES = _table(
    ("run", StringType()),
    ("node", IntegerType()),
    ("role", StringType()),
    ("name", StringType()),  # its role, with its place among those of the same role
    ("host", IntegerType()),
    ("groups", _INTS),  # those it receives
    required=("run", "node", "role", "name", "host", "groups"),
)

DAMAGE = _table(
    ("what", StringType()),  # the rule that the record breaks, see docs/checks.md
    ("detail", StringType()),
    ("file", StringType()),
    ("row", LongType()),  # in the file, from 0; null: it is not about one row
    ("node", IntegerType()),
    required=("what", "detail", "file"),
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
    ("holes", ArrayType(HOLES, False)),  # holes by node; null unless agreement is probabilistic
    ("nowhere", LongType()),  # messages that no receiver delivered; null like `holes`
    ("damage", ArrayType(DAMAGE, False)),  # what is wrong with the record of the run
    ("hashed", BooleanType()),  # whether the events were compared with the stored hash
    ("error", StringType()),  # why the trace could not be judged; null if it was
    required=("run", "folder", "protocol", "complete", "findings", "suppressed", "damage", "hashed"),
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

HAPPENINGS = _table(
    ("run", StringType()),
    ("node", IntegerType()),
    ("kind", StringType()),  # submit, deliver, out-of-order or drop
    ("time_ns", LongType()),
    required=("run", "node", "kind", "time_ns"),
)

CHANGES = _table(
    ("run", StringType()),
    ("node", IntegerType()),
    ("kind", StringType()),  # view, crash or recover
    ("time_ns", LongType()),
    ("group", IntegerType()),  # this and the next two: of a view
    ("config", LongType()),
    ("members", _INTS),
    ("issuer", LongType()),  # of a view that adds or removes one
    ("label", StringType()),
    required=("run", "node", "kind", "time_ns"),
)

# Measurements. A *point* is all runs of one protocol with one set of parameters, with any seed.

_POINT = (("protocol", StringType()), ("parameters", StringType()))
_BUCKETS = (
    ("bucket", LongType()),  # see `histogram.py`
    ("deliveries", LongType()),
    ("max_ns", LongType()),  # the longest latency within the bucket
)
_QUANTILES = (
    ("deliveries", LongType()),
    ("mean_ns", DoubleType()),
    ("p50_ns", LongType()),
    ("p90_ns", LongType()),
    ("p99_ns", LongType()),
    ("p999_ns", LongType()),
    ("max_ns", LongType()),
)
_SHARES = (
    ("latency_ns", LongType()),  # the longest within a bucket
    ("deliveries", LongType()),  # that took so long at most
    ("share", DoubleType()),
)


def _names(columns: tuple[tuple[str, DataType], ...]) -> tuple[str, ...]:
    return tuple(name for name, _ in columns)


HISTOGRAM = _table(("run", StringType()), *_BUCKETS, required=("run", *_names(_BUCKETS)))
POINT_HISTOGRAM = _table(*_POINT, *_BUCKETS, required=_names(_POINT + _BUCKETS))

LATENCY = _table(("run", StringType()), *_QUANTILES, required=("run", *_names(_QUANTILES)))
POINT_LATENCY = _table(*_POINT, *_QUANTILES, required=_names(_POINT + _QUANTILES))

DISTRIBUTION = _table(("run", StringType()), *_SHARES, required=("run", *_names(_SHARES)))
POINT_DISTRIBUTION = _table(*_POINT, *_SHARES, required=_names(_POINT + _SHARES))

THROUGHPUT = _table(
    ("run", StringType()),
    ("start_ns", LongType()),  # of the window; windows without any delivery have a row too
    ("window_ns", LongType()),  # its length
    ("messages", LongType()),  # delivered for the first time, at whichever receiver
    ("deliveries", LongType()),  # at all receivers together
    required=("run", "start_ns", "window_ns", "messages", "deliveries"),
)

ACTIVITY = _table(
    ("run", StringType()),
    ("node", IntegerType()),
    ("kind", StringType()),  # as in HAPPENINGS
    ("start_ns", LongType()),  # of the window; there is a row only where something happened
    ("window_ns", LongType()),
    ("events", LongType()),
    required=("run", "node", "kind", "start_ns", "window_ns", "events"),
)

WINDOW_LATENCY = _table(
    ("run", StringType()),
    ("start_ns", LongType()),  # of the window in which messages were delivered
    ("window_ns", LongType()),
    *_QUANTILES,
    required=("run", "start_ns", "window_ns", *_names(_QUANTILES)),
)

NODE_LATENCY = _table(
    ("run", StringType()),
    ("node", IntegerType()),
    *_QUANTILES,
    required=("run", "node", *_names(_QUANTILES)),
)

RATES = _table(
    ("run", StringType()),
    ("messages_per_s", DoubleType()),
    ("deliveries_per_s", DoubleType()),
    required=("run", "messages_per_s", "deliveries_per_s"),
)

NODE_DELIVERIES = _table(
    ("run", StringType()),
    ("node", IntegerType()),
    ("deliveries", LongType()),
    ("first_ns", LongType()),
    ("last_ns", LongType()),
    required=("run", "node", "deliveries", "first_ns", "last_ns"),
)

RECOVERIES = _table(
    ("run", StringType()),
    ("fault", IntegerType()),  # its place in the scenario, or among the crashes and returns of a live run
    ("kind", StringType()),
    ("at_ns", LongType()),
    ("detail", StringType()),  # the fault, as JSON
    ("node", IntegerType()),  # a receiver
    ("struck", BooleanType()),  # whether the fault names the receiver's host
    ("dated", BooleanType()),  # false: a crash of a host that records nothing, some time after `at_ns`
    ("submitted", LongType()),  # messages to its groups from the fault on: with none, nothing can recover
    ("recovery_ns", LongType()),  # see `recoveries.py`; null: never
    ("silence_ns", LongType()),  # see `recoveries.py`; null: nothing was delivered after the fault
    required=("run", "fault", "kind", "at_ns", "detail", "node", "struck", "dated", "submitted"),
)

# Results of experiments.

CASES = _table(
    ("place", LongType()),
    ("experiment", StringType()),
    ("case", StringType()),  # the run, or the name of a call of a function
    ("function", StringType()),  # null: a scenario was simulated
    ("parameters", StringType()),
    ("seed", LongType()),
    ("status", StringType()),  # kept, violated or failed, as in `runs`
    ("error", StringType()),
    ("values", MapType(StringType(), DoubleType(), False)),
    ("records", StringType()),  # what a function told besides, as a JSON list of objects
    required=("place", "experiment", "case", "parameters", "seed", "status", "values", "records"),
)

EXPERIMENTS = _table(
    ("place", LongType()),
    ("name", StringType()),
    ("title", StringType()),
    ("source", StringType()),
    ("cases", LongType()),
    ("seeds", _LONGS),
    ("broken", LongType()),  # cases that were violated or failed
    required=("place", "name", "title", "source", "cases", "seeds", "broken"),
)

FIGURES = _table(
    ("place", LongType()),
    ("experiment", StringType()),
    ("figure", StringType()),  # its id
    ("content", StringType()),  # the whole figure, as JSON
    required=("place", "experiment", "figure", "content"),
)

CLAIMS = _table(
    ("place", LongType()),
    ("id", StringType()),
    ("system", StringType()),
    ("source", StringType()),
    ("setup", StringType()),
    ("metric", StringType()),
    ("published", DoubleType()),
    ("accept_low", DoubleType()),
    ("accept_high", DoubleType()),
    ("measured", DoubleType()),  # null: not measured
    ("met", BooleanType()),  # null: not measured
    ("note", StringType()),
    ("seeds", _LONGS),
    ("simulated_seconds", DoubleType()),  # of virtual time behind the measurement; null: none was simulated
    required=("place", "id", "system", "source", "setup", "metric", "published", "note", "seeds"),
)
