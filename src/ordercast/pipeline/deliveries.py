"""Reads deliveries from trace folders, the input of latencies, rates and recoveries."""

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from ordercast.pipeline.events import select_events
from ordercast.pipeline.schemas import DELIVERIES
from ordercast.trace import ANSWERING, CARRYING, Kind


def deliveries(traces: DataFrame) -> DataFrame:
    """DELIVERIES of TRACES: every delivery of a submitted message, in and out of order."""
    return _of_messages(traces, *CARRYING)


def completions(traces: DataFrame) -> DataFrame:
    """The same columns for the moments at which clients had their answers (`complete` and `reply`).

    `node` is the client, `position` is null. The latency of a completion is what a client of Hydra's
    section 7.1 measures: from sending a message until the last receiver's reply; or, for a service, until
    the answer of the service.
    """
    return _of_messages(traces, Kind.COMPLETE, *ANSWERING)


def _of_messages(traces: DataFrame, *kinds: Kind) -> DataFrame:
    columns = [name for name in DELIVERIES.names if name != "run"]
    return select_events(traces, kinds, DELIVERIES, columns, _submitted)


def _submitted(table: pa.Table) -> pa.Table:
    """Drop deliveries that a protocol made up: they have no message, or it was never submitted."""
    return table.filter(pc.and_(pc.is_valid(table["message"]), pc.is_valid(table["submitted_ns"])))
