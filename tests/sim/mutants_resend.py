"""Hydra's senders that keep, broken: copies that nobody recognises, and losses that nobody tells.

Each scenario loses messages on their way to a sequencer, or leaves it unknown whether they were stamped.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

from ordercast.core import Env, NodeId
from ordercast.protocols.hydra.keeper import Held, Keeper, Ledger
from ordercast.protocols.hydra.messages import Inquiry, Outcome, Stamped
from ordercast.scenario.faults import Crash, Heal, Partition, Restart
from ordercast.scenario.spec import NetworkSpec, Scenario, UniformSpec
from tests.sim.hydra_scenes import CULPRIT, SENDERS, SEQUENCER, SERVICE, scene
from tests.sim.mutant import Mutant
from tests.sim.mutants_hydra import ORDER, Change, Make, run

KEEPS = {"resend": True, "repair": True}


def keeping(seed: int) -> Scenario:
    """A sequencer crashes on a network that loses packets, and comes back."""
    return scene(
        seed,
        options=KEEPS,
        network=NetworkSpec(latency=UniformSpec(50, 500), loss=0.1),
        fault=(Crash(at_ms=60, host=SEQUENCER), Restart(at_ms=120, host=SEQUENCER)),
    )


def stranded(seed: int) -> Scenario:
    """The only sequencer and the senders are cut off, so that it stamps what nobody gets."""
    return _cut_off(seed, (SEQUENCER, *SENDERS))


def one_witness(seed: int) -> Scenario:
    """The only sequencer, the senders and one receiver are cut off: what it delivers, no other has."""
    return _cut_off(seed, (SEQUENCER, *SENDERS, CULPRIT))


def _cut_off(seed: int, side: tuple[NodeId, ...]) -> Scenario:
    service = tuple(node - 1 for node in SERVICE)  # there is one sequencer less
    others = tuple(node for node in (*range(6), *service) if node not in side)
    cut = Partition(at_ms=40, sides=(side, others))
    return scene(seed, options=KEEPS | {"sequencers": 1}, fault=(cut, Heal(at_ms=300)))


def unreported(seed: int) -> Scenario:
    """A sequencer crashes while a receiver is down, so that not all receivers report."""
    return scene(seed, options=KEEPS, fault=(Crash(at_ms=20, host=CULPRIT), Crash(at_ms=60, host=SEQUENCER)))


class Impatient(Keeper):
    """Sends what is not acknowledged soon to another sequencer, or to the same as if it were new."""

    def _repeat(self, sequencer: int, node: NodeId, ledger: Ledger) -> None:
        for number, held in list(ledger.sent.items()):
            del ledger.sent[number], ledger.kept[number]
            self._bytes -= held.weight
            self.again.append((held.groups, held.payload))
        ledger.oldest = next(iter(ledger.kept), ledger.next)


class Careless(Keeper):
    """Takes a stamp for safety."""

    def on_stamped(self, message: Stamped) -> None:
        super().on_stamped(Stamped(message.sequencer, (), (*message.numbers, *message.safe)))


class Bold(Keeper):
    """Takes every removal for complete."""

    def _end(self, sequencer: int, *, complete: bool) -> None:
        super()._end(sequencer, complete=True)


class Secretive(Keeper):
    """Tells nobody what it could not save."""

    def _tell(self, held: Held) -> None:
        pass


def keeper(kind: type[Keeper], env: Env, make: Make) -> Any:
    """A sender that keeps in another way."""
    sender = make(env)
    sender._keeper = kind(env, sender._groups, sender._service, sender._options)
    return sender


def unaware(env: Env, make: Make) -> Any:
    """A receiver that recognises nothing of what it has delivered."""
    receiver = make(env)
    origins = receiver._origins

    class Blank:
        def __getattr__(self, name: str) -> Any:
            return getattr(origins, name)

        def outcome(self, sender: NodeId, inquiry: Inquiry) -> Outcome:
            return Outcome(inquiry.sequencer, (), inquiry.numbers, ())

    receiver._origins = Blank()
    return receiver


def _mutant(
    name: str,
    breaks: set[str],
    scenario: Any,
    change: Change,
    also: frozenset[str] = frozenset(),
) -> Mutant:
    return Mutant(f"hydra: {name}", frozenset(breaks), partial(run, scenario, (change,)), None, also, 6)


def _senders(kind: type[Keeper]) -> Change:
    return ("sender", partial(keeper, kind), None)


COPIES = ORDER | {"integrity", "stamp", "drop-detection"}
SCENARIOS: Mapping[str, Any] = {one.__name__: one for one in (keeping, stranded, one_witness, unreported)}
RESEND_MUTANTS = [
    _mutant("a sender does not wait for the removal", {"integrity"}, keeping, _senders(Impatient),
            also=COPIES),
    _mutant("receivers do not recognise what they delivered", {"integrity"}, keeping,
            ("receiver", unaware, None), also=COPIES),
    _mutant("a sender takes a stamp for safety", {"validity"}, stranded, _senders(Careless)),
    _mutant("a sender takes every removal for complete", {"integrity"}, one_witness, _senders(Bold),
            also=COPIES | {"validity"}),
    _mutant("a sender does not tell what it could not save", {"validity"}, unreported, _senders(Secretive)),
]  # fmt: skip
