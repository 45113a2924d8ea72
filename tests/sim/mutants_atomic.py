"""Atomic multicast and its consensus, broken inside."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from ordercast.core import Deployment, Env, Fault, Node, NodeId, Plan, Process, RemoteError
from ordercast.protocols.atomic_multicast.queue import Entry, Queue
from tests.sim.meddling import MeddlingEnv
from tests.sim.mutant import Mutant, deploy, run_swarm


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
    return Plan(plan.protocol, plan.guarantees, nodes, plan.groups, plan.senders, plan.codec)


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


def forgetful(disk: type[ForgetfulEnv], env: Env, make: Callable[[Env], Any]) -> Any:
    """Saves to a bad disk."""
    return make(disk(env, lambda meddler, delivery: [delivery]))


def _atomic(
    name: str, breaks: str, alter: Any, only: Fault | None, also: set[str] | None = None, seeds: int = 24
) -> Mutant:
    run = partial(run_swarm, partial(altered, alter), only)
    return Mutant(name, frozenset({breaks}), run, None, frozenset(also or ()), seeds)


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
]
