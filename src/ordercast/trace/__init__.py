"""Traces: one schema of events, in memory as Arrow tables and on disk as Parquet files."""

from ordercast.trace.deliveries import (
    ACTIONS,
    CARRYING,
    CONFIGURING,
    KIND_OF,
    ORDERED,
    PROMISED,
    SETTLING,
    notice_event,
)
from ordercast.trace.description import NodeDescription, RunDescription, describe
from ordercast.trace.event import ADDED, LOST, PACKETS, REMOVED, SAVED, UNFOUNDED, Event, Fate, Kind
from ordercast.trace.store import StoredRun, find_runs, read_run, run_folders, write_run
from ordercast.trace.table import SCHEMA, build_table, events_of, trace_hash

__all__ = [
    "ACTIONS",
    "CARRYING",
    "CONFIGURING",
    "KIND_OF",
    "ORDERED",
    "PACKETS",
    "PROMISED",
    "SETTLING",
    "notice_event",
    "ADDED",
    "LOST",
    "REMOVED",
    "SAVED",
    "SCHEMA",
    "UNFOUNDED",
    "Event",
    "Fate",
    "Kind",
    "NodeDescription",
    "RunDescription",
    "StoredRun",
    "build_table",
    "describe",
    "events_of",
    "find_runs",
    "read_run",
    "run_folders",
    "trace_hash",
    "write_run",
]
