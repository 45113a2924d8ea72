"""Online oracles: they judge a run's promises event by event. Each file has one property.

`OnlineJudge` shows the rows of a run to its oracles. The registry (`ordercast.judge.registry`) says which
oracles a run has.
"""

from ordercast.judge.online.case import Case, Handler
from ordercast.judge.online.judge import MakeOracle, OnlineJudge
from ordercast.judge.online.oracle import Oracle

__all__ = ["Case", "Handler", "MakeOracle", "OnlineJudge", "Oracle"]
