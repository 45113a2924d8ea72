"""Online oracles: a run's promises judged event by event, one property a file.

`OnlineJudge` shows the rows of a run to its oracles. Which oracles those are is the registry's matter
(`ordercast.judge.registry`): here is only how each property is watched.
"""

from ordercast.judge.online.case import Case, Handler
from ordercast.judge.online.judge import MakeOracle, OnlineJudge
from ordercast.judge.online.oracle import Oracle

__all__ = ["Case", "Handler", "MakeOracle", "OnlineJudge", "Oracle"]
