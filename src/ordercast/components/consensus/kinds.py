"""The parts of a replica that a variant of the protocol replaces by its own."""

from collections.abc import Callable
from typing import NamedTuple

from ordercast.components.consensus.election import Election, report
from ordercast.components.consensus.journal import Journal
from ordercast.components.consensus.leadership import Leadership
from ordercast.components.consensus.log import Log
from ordercast.components.consensus.messages import Prepare, Promise


class Kinds(NamedTuple):
    """Which classes a replica is made of; by default those of Multi-Paxos."""

    journal: type[Journal] = Journal
    election: type[Election] = Election
    leadership: type[Leadership] = Leadership
    report: Callable[[Log, Prepare], Promise] = report
