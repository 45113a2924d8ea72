"""Broken variants of protocols, networks, hosts and applications, and the property that must catch each."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec

from ordercast.core import (
    SECOND,
    Causality,
    Delivered,
    Delivery,
    Deployment,
    Dropped,
    Fault,
    HostId,
    Message,
    Nanos,
    NodeId,
    Plan,
    Stamp,
    message_id,
)
from ordercast.core.bundle import Item, pack, unpack
from ordercast.scenario.clock import Clock
from ordercast.scenario.faults import Crash
from ordercast.scenario.spec import NetworkSpec, WorkloadSpec
from ordercast.sim.build import build_world
from ordercast.sim.node_env import NodeEnv
from ordercast.sim.run import Run, drive, simulate
from ordercast.sim.scheduler import Action
from ordercast.sim.world import World
from tests.sim.meddling import MeddlingEnv, every, meddled
from tests.sim.models import peers, sequencer
from tests.sim.models.sequencer import Numbered, Receiver, ViewReceiver
from tests.sim.mutant import Mutant, calm, deploy, run_calm, run_swarm
from tests.sim.mutants_atomic import ATOMIC_MUTANTS
from tests.sim.mutants_atoms import ATOMS_MUTANTS
from tests.sim.mutants_epto import EPTO_MUTANTS
from tests.sim.mutants_hydra import HYDRA_MUTANTS
from tests.sim.mutants_idle import IDLE_MUTANTS
from tests.sim.mutants_llft import LLFT_MUTANTS
from tests.sim.mutants_logs import LOG_MUTANTS
from tests.sim.mutants_resend import RESEND_MUTANTS
from tests.sim.mutants_ring import RING_MUTANTS
from tests.sim.mutants_service import SERVICE_MUTANTS
from tests.sim.mutants_state import STATE_MUTANTS
from tests.sim.mutants_tickets import TICKET_MUTANTS
from tests.sim.mutants_views import VIEWS_MUTANTS

# Applications and their drivers: what is handed over is not what the protocol meant


def twice(env: MeddlingEnv, delivery: Delivered) -> list[Delivery]:
    """Deliver it again at once."""
    return [delivery, delivery]


def forged(env: MeddlingEnv, delivery: Delivered) -> list[Delivery]:
    """Deliver another that nobody submitted."""
    made_up = pack([Item(message_id(delivery.sender, 1_000_000 + len(env.memory)), env.now, b"forged")])
    return [delivery, Delivered(made_up, delivery.groups, delivery.sender)]


def corrupted(env: MeddlingEnv, delivery: Delivered) -> list[Delivery]:
    """Change a byte of the message."""
    payload = bytearray(delivery.payload)
    payload[-1] ^= 1
    return [msgspec.structs.replace(delivery, payload=bytes(payload))]


def mangled(env: MeddlingEnv, delivery: Delivered) -> list[Delivery]:
    """Hand over bytes that are no message."""
    return [msgspec.structs.replace(delivery, payload=delivery.payload[:9])]


def misattributed(env: MeddlingEnv, delivery: Delivered) -> list[Delivery]:
    """Name another sender."""
    return [msgspec.structs.replace(delivery, sender=delivery.sender + 1)]


def restamped(env: MeddlingEnv, delivery: Delivered) -> list[Delivery]:
    """Name another place in the order."""
    return [msgspec.structs.replace(delivery, stamp=Stamp(clock=1_000_000, issuer=0))]


def misconfigured(env: MeddlingEnv, delivery: Delivered) -> list[Delivery]:
    """Name a configuration that never began."""
    return [msgspec.structs.replace(delivery, config=delivery.config + 1)]


def skipped(env: MeddlingEnv, delivery: Delivered) -> list[Delivery]:
    """Deliver nothing."""
    return []


def swap_pairs(env: MeddlingEnv, delivery: Delivery) -> list[Delivery]:
    """Deliver the fourth and fifth message in the wrong order."""
    env.memory.append(delivery)
    if len(env.memory) == 4:
        return []
    return [delivery, env.memory[3]] if len(env.memory) == 5 else [delivery]


def swap_multigroup(env: MeddlingEnv, delivery: Delivery) -> list[Delivery]:
    """Deliver the first two messages that go to several groups in the wrong order."""
    if not isinstance(delivery, Delivered) or len(delivery.groups) == 1 or len(env.memory) > 1:
        return [delivery]
    env.memory.append(delivery)
    return [] if len(env.memory) == 1 else [delivery, env.memory[0]]


def skip_message(number: int) -> Callable[[MeddlingEnv, Delivery], list[Delivery]]:
    """Deliver everything but one message of each sender."""

    def meddle(env: MeddlingEnv, delivery: Delivery) -> list[Delivery]:
        assert isinstance(delivery, Delivered)
        named = {item.message & 0xFFFF for item in unpack(delivery.payload)}
        return [] if number in named else [delivery]

    return meddle


def misrouted(seed: int) -> Run:
    """A receiver gets and delivers messages of a group that it is not in."""

    def change(plan: Plan) -> Plan:
        # The protocol believes that node 0 receives both groups; the contract says otherwise.
        wrong = deploy("unordered", Deployment(((0, 1, 2), (0, 3, 4, 5)), 3))
        return Plan("unordered", plan.guarantees, wrong.nodes, plan.groups, plan.senders, plan.codec)

    return run_calm("unordered", change, seed, groups=2)


def witness_crashes(seed: int) -> Run:
    """A message reaches the application of one receiver only, and that one crashes."""
    scenario = calm("atomic_multicast", seed, fault=(Crash(at_ms=60, host=0),))
    return simulate(scenario, meddled(scenario.plan(), (1, 2), skip_message(3)))


# Receivers of the sequencer model


class Forgetful(Receiver):
    """Does not notify of every third gap."""

    gaps = 0

    def notify(self, number: int) -> None:
        """Forget some."""
        self.gaps += 1
        if self.gaps % 3:
            super().notify(number)


class Tardy(Receiver):
    """Notifies of a gap only after the message behind it."""

    owed: int | None = None

    def notify(self, number: int) -> None:
        """Put it off."""
        if self.owed is not None:
            super().notify(self.owed)
        self.owed = number

    def deliver(self, message: Numbered) -> None:
        """First the message, then what is owed."""
        super().deliver(message)
        self.pay()

    def on_timer(self, name: str) -> None:
        """Where no message is behind the gap, it is not late."""
        super().on_timer(name)
        self.pay()

    def pay(self) -> None:
        """Notify of what is owed."""
        if self.owed is not None:
            super().notify(self.owed)
            self.owed = None


class Resurrecting(Receiver):
    """Delivers a late message although it has notified of its drop."""

    def notify(self, number: int) -> None:
        """Remember the gap."""
        super().notify(number)
        self.lost = {*getattr(self, "lost", ()), number}

    def on_message(self, source: NodeId, message: Any) -> None:
        """Deliver what was called lost."""
        if isinstance(message, Numbered) and self.number(message) in getattr(self, "lost", ()):
            self.lost.remove(self.number(message))
            self.deliver(message)
        super().on_message(source, message)


class Phantom(Receiver):
    """Notifies of a drop that did not happen, of a number that it delivers."""

    def deliver(self, message: Numbered) -> None:
        """Call every tenth message lost, too."""
        super().deliver(message)
        if self.number(message) % 10 == 0:
            self.env.deliver(Dropped(self.group, self.sequencer, self.number(message)))


class Foreboding(Receiver):
    """Notifies of a drop of a number that the sequencer never gave."""

    def deliver(self, message: Numbered) -> None:
        """With every tenth message, call another one lost that is far ahead."""
        super().deliver(message)
        if self.number(message) % 10 == 0:
            self.env.deliver(Dropped(self.group, self.sequencer, 1_000_000 + self.number(message)))


class Stranger(ViewReceiver):
    """Believes in another membership from the second view on."""

    def install(self, config: int) -> None:
        """Leave the last member out."""
        if config > 1 and len(self.members) > 1:
            self.members = self.members[:-1]
        super().install(config)


class LateInstaller(ViewReceiver):
    """Installs each view one message late."""

    due: int | None = None

    def deliver(self, message: Numbered) -> None:
        """A view comes after the message behind it."""
        Receiver.deliver(self, message)
        if self.due is not None:
            self.install(self.due)
            self.due = None
        number = self.number(message)
        if number % sequencer.VIEW_EVERY == 0:
            self.due = 1 + number // sequencer.VIEW_EVERY


def resurrecting(seed: int) -> Run:
    """A network on which packets come later than a receiver's patience lasts."""
    scenario = calm("", seed, network=NetworkSpec(reordering=0.2, reorder_us=50_000))
    return simulate(scenario, sequencer.plan(scenario.deployment(), broken=Resurrecting))


# Peers of the causal model


class Hasty(peers.Peer):
    """Delivers what comes when it comes, once."""

    def on_message(self, source: NodeId, message: Any) -> None:
        """Hold nothing back."""
        seen = self.held.setdefault((source, message.past[source]), message)
        if seen is message:
            self.delivered[source] += 1
            self.env.deliver(Delivered(message.payload, (0,), source))


class Selfish(peers.Peer):
    """Waits for the sender's own messages, but not for what they depend on."""

    def due(self, source: NodeId, post: peers.Post) -> bool:
        """FIFO is not enough."""
        return post.past[source] == self.delivered[source]


# Hosts and networks


class BackwardClock(Clock):
    """Does not hold its reading when it is set back."""

    def read(self, true_time: Nanos) -> Nanos:
        """A second less from the tenth millisecond on."""
        return super().read(true_time) - (SECOND if true_time > SECOND // 100 else 0)


def backward_clock(seed: int) -> Run:
    """A host whose clock is set back and does not hold."""
    return run_in(lambda world: world.envs[0].__setattr__("clock", BackwardClock(2 * SECOND)), seed)


def undead(seed: int) -> Run:
    """A host that is said to have crashed, and goes on."""

    def revive(world: World) -> None:
        crash = world.crash

        def half_crash(host_id: HostId) -> None:
            crash(host_id)
            world.hosts[host_id].up = True

        world.crash = half_crash  # type: ignore[method-assign]

    return run_in(revive, seed, fault=(Crash(at_ms=20, host=0),))


def misdelivering(seed: int) -> Run:
    """A network that brings some packets to a neighbour of the one they are for."""

    def cross(world: World) -> None:
        transmit = world.transmit

        def elsewhere(env: NodeEnv, departure: Nanos, to: NodeId, message: Message) -> None:
            transmit(env, departure, (to + 3) % 6 if world.rng.random() < 0.1 else to, message)

        world.transmit = elsewhere  # type: ignore[method-assign]

    return run_in(cross, seed, groups=2)


def impatient_client(seed: int) -> Run:
    """Clients that take the first answer to a message for the answers of all receivers."""

    def spread(world: World) -> None:
        answer = world.application_send

        def for_all(source: NodeId, target: NodeId, action: Action, node: NodeId, message: int) -> None:
            for receiver in world.plan.groups[0]:
                answer(source, target, action, receiver, message)

        world.application_send = for_all  # type: ignore[assignment]

    return run_in(spread, seed, workload=WorkloadSpec(kind="closed", messages=40))


def without_digests(seed: int) -> Run:
    """A driver that forgets the digests of what is delivered."""

    def forget(world: World) -> None:
        remember = world.remember

        def bare(*bundle: Any) -> Any:
            facts: list[Any] = remember(*bundle)
            facts[:] = [(*fact[:3], None) for fact in facts]
            return facts

        world.remember = bare  # type: ignore[assignment]

    return run_in(forget, seed)


def run_in(change: Callable[[World], None], seed: int, **changes: Any) -> Run:
    """Run unordered multicast in a world that is changed before it starts."""
    scenario = calm("unordered", seed, **changes)
    world = build_world(scenario, scenario.plan())
    change(world)
    return drive(scenario, world)


# The table


def _meddled(name: str, breaks: set[str], protocol: str, meddle: Any, nodes: tuple[NodeId, ...]) -> Mutant:
    culprit = nodes[0] if len(nodes) == 1 else None
    change = partial(meddled, nodes=nodes, meddle=meddle)
    return Mutant(name, frozenset(breaks), partial(run_calm, protocol, change), culprit)


def _model(
    name: str,
    breaks: set[str],
    make: Callable[[Deployment], Plan],
    only: Fault | None,
    also: frozenset[str] = frozenset(),
) -> Mutant:
    return Mutant(name, frozenset(breaks), partial(run_swarm, make, only), 0, also)


def _lossy(broken: type[Receiver]) -> Callable[[Deployment], Plan]:
    return partial(sequencer.plan, broken=broken)


def _views(broken: type[Receiver]) -> Callable[[Deployment], Plan]:
    return partial(sequencer.plan, guarantees=sequencer.VIEWS, make=ViewReceiver, broken=broken)


def _peers(causality: Causality, broken: type[peers.Peer]) -> Callable[[Deployment], Plan]:
    return partial(peers.plan, causality=causality, broken=broken)


def cross_groups(seed: int) -> Run:
    """All receivers of one group swap two messages that went to another group too."""
    change = partial(meddled, nodes=(3, 4, 5), meddle=swap_multigroup)
    workload = WorkloadSpec(messages=80, rate_per_s=1000, spread=(0.5, 0.5))
    return run_calm("atomic_multicast", change, seed, groups=2, workload=workload)


MUTANTS = [
    _meddled("a receiver delivers some messages twice", {"integrity"}, "unordered", every(7, twice), (1,)),
    _meddled("a receiver makes up messages", {"integrity"}, "unordered", every(7, forged), (1,)),
    _meddled("a receiver changes a byte", {"integrity"}, "unordered", every(7, corrupted), (1,)),
    _meddled("a receiver hands over garbage", {"integrity"}, "unordered", every(7, mangled), (1,)),
    _meddled("a receiver names the wrong sender", {"integrity"}, "unordered", every(7, misattributed), (1,)),
    _meddled(
        "a receiver names another stamp",
        {"stamp", "stamp-order", "stamp-owner"},
        "atomic_multicast",
        every(9, restamped),
        (1,),
    ),
    Mutant("a receiver delivers for a group it is not in", frozenset({"integrity"}), misrouted, 0),
    Mutant("the network brings packets to the wrong host", frozenset({"integrity"}), misdelivering),
    _meddled(
        "a receiver swaps two messages", {"total-order", "stamp-order"}, "atomic_multicast", swap_pairs, (1,)
    ),
    Mutant(
        "a group swaps messages shared with another",
        frozenset({"acyclic-order", "stamp-order"}),
        cross_groups,
    ),
    _meddled("a receiver leaves messages out", {"agreement"}, "atomic_multicast", every(9, skipped), (1,)),
    Mutant("only a receiver that crashes delivers", frozenset({"agreement"}), witness_crashes, 0),
    _meddled("no receiver delivers a message", {"validity"}, "atomic_multicast", skip_message(3), (0, 1, 2)),
    _model("a gap is not notified", {"drop-detection", "agreement"}, _lossy(Forgetful), Fault.LOSS),
    _model("a notification comes late", {"drop-detection"}, _lossy(Tardy), Fault.LOSS),
    Mutant(
        "a lost message is delivered after all",
        frozenset({"drop-detection", "total-order", "stamp-order"}),  # it comes too late for its place, too
        resurrecting,
        0,
    ),
    _model(
        "a delivered message is called lost", {"drop-detection", "drop-reason"}, _lossy(Phantom), Fault.PAUSE
    ),
    _model("what nobody sent is called lost", {"drop-reason", "agreement"}, _lossy(Foreboding), Fault.PAUSE),
    _model("a peer ignores the order of sending", {"fifo"}, _peers(Causality.FIFO, Hasty), Fault.REORDERING),
    _model("a peer ignores causes", {"causal"}, _peers(Causality.CAUSAL, Selfish), Fault.REORDERING),
    _model("a receiver installs another view", {"view-synchrony"}, _views(Stranger), Fault.REORDERING),
    # If the run ends before the late view, what it delivered in its last one does not count.
    _model(
        "a receiver installs views late",
        {"view-synchrony"},
        _views(LateInstaller),
        Fault.REORDERING,
        frozenset({"agreement", "probe"}),
    ),
    _meddled(
        "a receiver names a configuration that it has not installed",
        {"configuration"},
        "atomic_multicast",
        every(9, misconfigured),
        (1,),
    ),
    Mutant("a client does not wait for all answers", frozenset({"completion"}), impatient_client),
    Mutant("a driver records no digests", frozenset({"digests"}), without_digests),
    *ATOMIC_MUTANTS,
    *ATOMS_MUTANTS,
    *HYDRA_MUTANTS,
    *LLFT_MUTANTS,
    *LOG_MUTANTS,
    *RESEND_MUTANTS,
    *EPTO_MUTANTS,
    *IDLE_MUTANTS,
    *RING_MUTANTS,
    *SERVICE_MUTANTS,
    *TICKET_MUTANTS,
    *STATE_MUTANTS,
    *VIEWS_MUTANTS,
    Mutant("a clock runs backwards", frozenset({"clock"}), backward_clock, 0),
    Mutant("a crashed host goes on", frozenset({"lifecycle"}), undead, 0),
]
