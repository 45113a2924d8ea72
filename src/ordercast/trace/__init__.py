"""Traces: one schema of events, in memory as Arrow tables and on disk as Parquet files."""

from ordercast.trace.deliveries import (
    ACTIONS,
    CARRYING,
    CONFIGURING,
    KIND_OF,
    ORDERED,
    PROMISED,
    RETURNING,
    SETTLING,
    notice_event,
)
from ordercast.trace.description import NodeDescription, RunDescription, Stretch, describe
from ordercast.trace.event import ADDED, LOST, PACKETS, PROBE, REMOVED, SAVED, UNFOUNDED, Event, Fate, Kind
from ordercast.trace.store import FileRows, StoredRun, find_runs, merged, read_run, run_folders, write_run
from ordercast.trace.table import SCHEMA, build_table, events_of, trace_hash

__all__ = [
    "ACTIONS",
    "CARRYING",
    "CONFIGURING",
    "KIND_OF",
    "ORDERED",
    "PACKETS",
    "PROBE",
    "PROMISED",
    "RETURNING",
    "SETTLING",
    "notice_event",
    "ADDED",
    "LOST",
    "REMOVED",
    "SAVED",
    "SCHEMA",
    "UNFOUNDED",
    "Event",
    "FileRows",
    "Fate",
    "Kind",
    "NodeDescription",
    "RunDescription",
    "StoredRun",
    "Stretch",
    "build_table",
    "describe",
    "events_of",
    "find_runs",
    "merged",
    "read_run",
    "run_folders",
    "trace_hash",
    "write_run",
]
