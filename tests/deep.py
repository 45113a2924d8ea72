"""What is deep: tests that repeat at length what a cheaper one shows. `make test-deep` runs them.

`make test` leaves them out and still tries every property, protocol, mutant and command. Deep are:

- Swarms: all but the first ten seeds of each protocol, most seeds of conformance, of atomic multicast with
  small limits, and of clean and tampered traces before both judges. They differ from the first ones by luck
  alone.
- Mutants on all their seeds, and mutants as live hosts write them, on Spark. `make test` has both judges
  condemn each, ends when it is caught, and has Spark condemn each trace.
- Model checking: most checks of the specification with TLC, each of which takes a Java, and the larger
  explorations. The smallest checks that hold, two that must fail, and all broken variants are not deep.
- Kills of live processes: leaders, replicas of services, twenty sequencers in a row, a third of EpTO's peers,
  drivers of Spark and clusters of it. A receiver and a sender that are killed, and a cluster that is
  killed and restarted by the commands, are not deep.
- Fuzzing beyond the first seed of each protocol, and lies behind valid seals beyond the first few.
- Hosts that come to a running cluster and are removed: by other transports than UDP, as programs, and in
  later runs. Peers under load that take one in and do without another are not deep.
- Leaders that are cut off, live and with live timeouts; all scenarios of live faults.
- Live runs that take long and differ in the protocol only: messages of a megabyte on a network that loses,
  a bad network below atomic multicast, examples and a second defect run both ways.
- Commands of the tutorial, runs of the engine that a page shows, and work on Spark that smaller tests show
  too: a whole reproduction, a sweep of a page, a Java from the package registry.
- Replicas with states of 100 MB that come back with an empty disk, and crashes of replicas between those
  after which `make test` has them crash.
- Further seeds of services, honest and tampered with, before both judges and before the search by values.
- Further random histories on which the search for linearizability is compared with the definition.
- Further seeds on which EpTO's engine is compared with its peers, further ones of Cyclon, and how evenly it
  mixes over time.
- Further storms of joins, leaves and crashes in which applications get states, and such runs live.
- LLFT: storms of crashes, cuts and losses beyond the first twenty, each type of message lost to each process,
  trouble at the other steps of joins, leaves and exchanges, also of tiers, and such runs before both judges.
- Crashes of hosts at the other steps of transactions over shards, of decisions on what a shard has lost and
  of changes of epochs, and the loss of each further message about these.
- What protocols with tickets send for a message, beyond the first two.
- The soak, the attack, overlapping groups and kills of LLFT's primary, the benchmarks that check themselves
  on a live cluster.
"""

from collections.abc import Iterable
from typing import Any

import pytest


def deep_after(count: int, values: Iterable[Any]) -> list[Any]:
    """Parameters of a test: the first ones for `make test`, those after them deep."""
    return [
        value if place < count else pytest.param(*_together(value), marks=pytest.mark.deep)
        for place, value in enumerate(values)
    ]


def deep_between(numbers: range) -> list[Any]:
    """All numbers from the first to the last of a range: those in its steps for `make test`, those between
    them deep."""
    every = range(numbers.start, numbers.stop)
    return [one if one in numbers else pytest.param(one, marks=pytest.mark.deep) for one in every]


def _together(value: Any) -> tuple[Any, ...]:
    """The arguments of one case: a tuple has several."""
    return value if isinstance(value, tuple) else (value,)
