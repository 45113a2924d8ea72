"""Protocols that break no promise about what they deliver, because they hardly deliver anything.

Each makes a plan, so that the swarm and the conformance suite can run it. Two do something for which there
must be a reason: a drop that is notified of, a tag. The others are condemned by what they do not do.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from ordercast.catalogue import find_protocol
from ordercast.core import (
    MILLISECOND,
    Delivered,
    Delivery,
    Deployment,
    Env,
    Message,
    NodeId,
    OutOfOrder,
    Plan,
)
from ordercast.protocols.hydra.lane import Lane
from ordercast.protocols.hydra.messages import Groupcast, Step
from tests.sim.meddling import MeddlingEnv
from tests.sim.mutant import Mutant, deploy, run_swarm
from tests.sim.mutants_hydra import Make, Proxy, changed

SEEDS = 40
"""Within so many seeds of the swarm each must be caught."""
DEAF_NS = 600 * MILLISECOND
"""By then all faults are over in most seeds."""


def mute(env: Env, make: Make) -> Any:
    """Delivers nothing at all."""
    return make(MeddlingEnv(env, lambda meddler, delivery: []))


def disowning(env: Env, make: Make) -> Any:
    """Calls everything dropped after the first gap, without asking anybody."""
    receiver = make(env)
    merge, gaps = receiver._merge, list[Lane]()

    def offer(lane: Lane, packet: Groupcast, number: int, room: int = 0) -> bool:
        if gaps:
            lane.note(number, packet.clock)
            return False
        return bool(merge.offer(lane, packet, number))

    def hopeless(lane: Lane) -> int:
        gaps.append(lane)
        return lane.high

    receiver.reception.merge = receiver._follower._merge = Proxy(merge, offer=offer)
    receiver._repairer.hopeless = hopeless
    return receiver


def hoping(env: Env, make: Make) -> Any:
    """Never gives up: a packet that nobody has is asked for without end."""
    receiver = make(env)
    repairer = receiver._repairer
    hopeless = repairer.hopeless

    def ask(lane: Lane) -> int:
        hopeless(lane)
        return 0

    repairer.hopeless = ask
    return receiver


def dead_after_a_removal(env: Env, make: Make) -> Any:
    """Does nothing any more after a sequencer was removed."""
    receiver = make(env)
    install, on_message, on_timer = receiver.changed, receiver.on_message, receiver.on_timer
    removals = list[Step]()

    def note(step: Step) -> None:
        install(step)
        if step.change == "removed":
            removals.append(step)

    receiver.changed = note
    receiver.on_message = lambda source, message: None if removals else on_message(source, message)
    receiver.on_timer = lambda name: None if removals else on_timer(name)
    return receiver


def reversing(env: Env, make: Make) -> Any:
    """Delivers what a round makes stable the other way round, all of it tagged as out of order."""
    held: list[OutOfOrder] = []

    def hold(meddler: MeddlingEnv, delivery: Delivery) -> list[Delivery]:
        if not isinstance(delivery, Delivered | OutOfOrder):
            return [delivery]  # a notice
        held.append(
            OutOfOrder(delivery.payload, delivery.groups, delivery.sender, delivery.stamp, delivery.config)
        )
        return []

    peer = make(MeddlingEnv(env, hold))
    run_round = peer._run_round

    def run_and_reverse() -> None:
        run_round()
        for delivery in reversed(held):
            env.deliver(delivery)
        held.clear()

    peer._run_round = run_and_reverse
    return peer


def deaf_while_faults_last(env: Env, make: Make) -> Any:
    """Ignores all packets until the faults of most seeds are over."""
    receiver = make(env)
    handler = receiver.on_message

    def on_message(source: NodeId, message: Message) -> None:
        if env.now > DEAF_NS:
            handler(source, message)

    receiver.on_message = on_message
    return receiver


def _altered(protocol: str, role: str, alter: Callable[..., Any], deployment: Deployment) -> Plan:
    return changed(deploy(protocol, deployment), (role, alter, None))


def _tagging(alter: Callable[..., Any], deployment: Deployment) -> Plan:
    """EpTO's peers, which may tag."""
    protocol = find_protocol("epto")
    plan = protocol.deploy(deployment, protocol.options(late="tag"))
    return changed(plan, ("peer", alter, None))


def _forgetful(alter: Callable[..., Any], deployment: Deployment) -> Plan:
    """Hydra's receivers where hardly any packet is kept, so that some are lost."""
    protocol = find_protocol("hydra")
    plan = protocol.deploy(deployment, protocol.options(keep_bytes=1024))
    return changed(plan, ("receiver", alter, None))


IDLE: Mapping[str, Callable[[Deployment], Plan]] = {
    "hydra delivers nothing": partial(_altered, "hydra", "receiver", mute),
    "hydra calls everything dropped after its first drop": partial(_altered, "hydra", "receiver", disowning),
    "hydra never gives up a packet": partial(_forgetful, hoping),
    "hydra is dead after a removal": partial(_altered, "hydra", "receiver", dead_after_a_removal),
    "epto delivers nothing": partial(_tagging, mute),
    "epto reverses the order and tags everything": partial(_tagging, reversing),
    "atomic multicast is deaf while faults last": partial(
        _altered, "atomic_multicast", "receiver", deaf_while_faults_last
    ),
}
"""Plans of protocols that do as good as nothing."""


def _idle(name: str, breaks: str, *also: str) -> Mutant:
    run = partial(run_swarm, IDLE[name], None)
    return Mutant(name, frozenset({breaks}), run, also=frozenset(also), seeds=SEEDS)


IDLE_MUTANTS = [
    _idle("hydra delivers nothing", "probe", "progress"),
    _idle("hydra calls everything dropped after its first drop", "drop-reason", "probe"),
    _idle("hydra never gives up a packet", "progress", "probe", "agreement"),
    _idle("hydra is dead after a removal", "probe", "progress", "agreement"),
    _idle("epto delivers nothing", "probe", "progress", "joining"),
    _idle("epto reverses the order and tags everything", "stamp-order", "probe"),
    _idle("atomic multicast is deaf while faults last", "progress"),
]
