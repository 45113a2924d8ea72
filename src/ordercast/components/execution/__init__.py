"""What all protocols that replicate services share: calls of clients, and their execution exactly once."""

from ordercast.components.execution.call import Call, pack_call, unpack_call
from ordercast.components.execution.calls import Calls, Pending
from ordercast.components.execution.executor import Execution, Executor
from ordercast.components.execution.options import CallOptions
from ordercast.components.execution.packed import read_state
from ordercast.components.execution.results import combine_results
from ordercast.components.execution.shard_calls import ShardCalls

__all__ = [
    "Call",
    "CallOptions",
    "Calls",
    "Execution",
    "Executor",
    "Pending",
    "ShardCalls",
    "combine_results",
    "pack_call",
    "read_state",
    "unpack_call",
]
