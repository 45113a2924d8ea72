"""Runs on disk whose operations can be executed again."""

from ordercast.judge import Replay
from ordercast.services import BUILT_IN, find_service
from ordercast.trace import StoredRun
from ordercast.trace.values import read_values


def stored_replay(run: StoredRun) -> Replay | None:
    """The operations of a run, if it keeps its values and its service is built in.

    A service of a user is not looked for: a trace must not decide which code is run.
    """
    if run.description.service not in BUILT_IN:
        return None
    values = read_values(run.folder)
    return None if values is None else Replay(find_service(run.description.service), values.operations)
