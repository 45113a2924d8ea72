"""Atomic multicast and its consensus, broken inside."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import msgspec

from ordercast.components.consensus import ConsensusOptions
from ordercast.components.consensus.vigil import Vigil
from ordercast.core import Deployment, Env, Fault, Node, NodeId, Plan, Process, RemoteError
from ordercast.protocols.atomic_multicast.queue import Entry, Queue
from ordercast.scenario.faults import Heal, Partition
from ordercast.scenario.spec import NetworkSpec, UniformSpec, WorkloadSpec
from ordercast.sim.run import Run, simulate
from tests.sim.meddling import MeddlingEnv
from tests.sim.mutant import Mutant, calm, deploy, run_swarm


class ImpatientQueue(Queue):
    """Does not wait for the group's clock."""

    __slots__ = ()

    def take(self, clock: int) -> list[Entry]:
        """Whatever has a final number."""
        return super().take(1 << 60)


class ForgetfulEnv(MeddlingEnv):
    """A disk that loses what is saved under some names."""

    forgets = ""

    def save(self, name: str, state: bytes | None) -> None:
        """Keep it, unless it is one of those."""
        if not name.startswith(self.forgets):
            self.inner.save(name, state)


class NoPromises(ForgetfulEnv):
    """Loses promises and what was accepted, but not that there was an earlier life."""

    def save(self, name: str, state: bytes | None) -> None:
        """Keep the first ballot only."""
        if name == "delivered" or (name == "consensus.ballot" and state == bytes(8)):
            self.inner.save(name, state)


class NoDeliveries(ForgetfulEnv):
    """Loses the place of the last delivery."""

    forgets = "delivered"


def altered(alter: Callable[..., Process], deployment: Deployment) -> Plan:
    """Atomic multicast whose receivers are made in another way."""
    plan = deploy("atomic_multicast", deployment)
    nodes = tuple(
        Node(node.id, node.role, node.host, partial(alter, make=node.factory))
        if node.role == "receiver"
        else node
        for node in plan.nodes
    )
    return replace(plan, nodes=nodes)


def quorum_of_one(env: Env, make: Callable[[Env], Any]) -> Any:
    """Every replica decides alone, and takes no offence at what the others say."""
    receiver = make(env)
    receiver._replica._group.majority = 1
    handler = receiver.on_message

    def on_message(source: NodeId, message: Any) -> None:
        with suppress(RemoteError):
            handler(source, message)

    receiver.on_message = on_message
    return receiver


def impatient(env: Env, make: Callable[[Env], Any]) -> Any:
    """Delivers before the group's clock has passed the final number."""
    receiver = make(env)
    receiver._queue = ImpatientQueue()
    return receiver


def own_timestamp(env: Env, make: Callable[[Env], Any]) -> Any:
    """Takes its own group's timestamp for the final number."""
    receiver = make(env)
    finalise = receiver._finalise
    receiver._finalise = lambda entry, final: finalise(entry, entry.proposal)
    return receiver


class StubbornOptions(ConsensusOptions, frozen=True):
    """A leader needs no answers."""

    @property
    def unanswered_max(self) -> int:
        """Without end."""
        return 1 << 60


def stubborn(env: Env, make: Callable[[Env], Any]) -> Any:
    """Leads on though nobody answers."""
    receiver = make(env)
    log = receiver._replica._log
    log.options = StubbornOptions(**msgspec.structs.asdict(log.options))
    return receiver


class TrustingVigil(Vigil):
    """Has heard a leader once, and trusts in it for ever."""

    __slots__ = ("_trusts",)

    def look(self) -> bool:
        """Lose patience only if there was no leader yet."""
        self._trusts = self.heard = self.heard or getattr(self, "_trusts", False)
        return super().look()


def trusting(env: Env, make: Callable[[Env], Any]) -> Any:
    """Follows for ever whom it has heard once."""
    receiver = make(env)
    replica = receiver._replica
    replica._vigil = TrustingVigil(env, replica._options)
    return receiver


def forgetful(disk: type[ForgetfulEnv], env: Env, make: Callable[[Env], Any]) -> Any:
    """Saves to a bad disk."""
    return make(disk(env, lambda meddler, delivery: [delivery]))


def _atomic(
    name: str, breaks: str, alter: Any, only: Fault | None, also: set[str] | None = None, seeds: int = 24
) -> Mutant:
    run = partial(run_swarm, partial(altered, alter), only)
    return Mutant(name, frozenset({breaks}), run, None, frozenset(also or ()), seeds)


LEADER = 0
"""Leads the first group from the start."""


def run_cut_off(alter: Any, seed: int) -> Run:
    """The leader of three receivers is cut off for two seconds: both ways, or one way, as the seed says."""
    others = (1, 2, 3, 4, 5)
    sides = ((LEADER,), others) if seed % 3 == 1 else (others, (LEADER,))
    scenario = calm(
        "atomic_multicast",
        seed,
        network=NetworkSpec(latency=UniformSpec(50, 500)),
        workload=WorkloadSpec(messages=900, rate_per_s=100),
        liveness=True,
        fault=(Partition(at_ms=300, sides=sides, one_way=seed % 3 > 0), Heal(at_ms=2800)),
    )
    return simulate(scenario, altered(alter, scenario.deployment()))


def _cut_off(name: str, alter: Any, also: set[str] | None = None) -> Mutant:
    run = partial(run_cut_off, alter)
    return Mutant(name, frozenset({"progress"}), run, None, frozenset(also or ()), seeds=6)


STAMPS = ("stamp", "stamp-order", "stamp-owner")
ATOMIC_MUTANTS = [
    _atomic(
        "a replica decides alone",
        "agreement",
        quorum_of_one,
        Fault.PARTITION,
        {"total-order", "acyclic-order", "validity", *STAMPS, "progress", "probe"},
    ),
    # What comes too late for its place is left out by the receiver itself: nobody gets it.
    _atomic("a receiver does not wait for its clock", "agreement", impatient, None, {"validity"}),
    _atomic("a receiver goes by its own timestamp", "acyclic-order", own_timestamp, None, {"stamp"}),
    _atomic("a disk loses deliveries", "integrity", partial(forgetful, NoDeliveries), Fault.RESTART),
    _atomic(
        "a disk loses promises",
        "validity",
        partial(forgetful, NoPromises),
        Fault.RESTART,
        {"agreement", "total-order", "acyclic-order", *STAMPS, "progress", "probe"},
        seeds=60,
    ),
    _cut_off("a leader does not give up", stubborn),
    _cut_off("a follower trusts its leader for ever", trusting, {"validity", "probe"}),
]
