"""All interleavings of small runs of HydraPaxos, and what must hold in them."""

import pytest

from ordercast.cli import run
from ordercast.components.network_ordered.replica import NetworkReplica
from ordercast.components.network_ordered.views import Views
from ordercast.core import Delivered, Replied, Stamp, message_id
from ordercast.core.bundle import pack_bundle
from ordercast.lab.model import explorer_hydra_paxos
from ordercast.lab.model.explorer import explore
from ordercast.lab.model.explorer_case import Case
from ordercast.lab.model.explorer_paxos_properties import ADD
from ordercast.lab.model.explorer_world import History
from ordercast.lab.model.result import HOLDS
from tests.deep import deep_after
from tests.network_ordered.mutants import MUTANTS

CASES = sorted(explorer_hydra_paxos.quick(), key=lambda chosen: "gap" in chosen.name)
LONGER = [chosen for chosen in explorer_hydra_paxos.deep() if chosen.name == "removal-calls-view"]
REACHED = {
    "view": (Views, "_lead"),
    "gap": (NetworkReplica, "give_up"),
    "removal": (NetworkReplica, "reconfigured"),
}
"""What a case with this word in its name must come to in some interleaving; otherwise it shows nothing."""


@pytest.mark.parametrize("chosen", deep_after(2, [*CASES, *LONGER]), ids=lambda chosen: chosen.name)
def test_all_interleavings_keep_the_promises(chosen: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    reached = {word: watch(monkeypatch, *REACHED[word]) for word in REACHED if word in chosen.name}
    result = explore(chosen)
    assert result.found == HOLDS, result.detail
    assert result.detail.startswith("all states")
    assert result.states > 200
    assert reached and all(reached.values()), f"nothing came to: {reached}"


def watch(monkeypatch: pytest.MonkeyPatch, owner: type, name: str) -> list[str]:
    """A list that has something in it as soon as a method is called."""
    calls: list[str] = []
    method = getattr(owner, name)

    def noted(*args: object, **more: object) -> object:
        calls[:] = [name]
        return method(*args, **more)

    monkeypatch.setattr(owner, name, noted)
    return calls


@pytest.mark.parametrize("chosen", CASES[:2], ids=lambda chosen: chosen.name)
def test_a_defect_is_found(chosen: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant = next(one for one in MUTANTS if one.name == "a recovered packet at the end of the log")
    monkeypatch.setattr(mutant.owner, mutant.attribute, mutant.value)
    assert "entries come in order" in explore(chosen).found


def test_names_of_cases_are_different() -> None:
    names = [chosen.name for chosen in (*explorer_hydra_paxos.quick(), *explorer_hydra_paxos.deep())]
    assert len(set(names)) == len(names)


PLAN = CASES[0].plan
PROPERTIES = CASES[0].properties
CLIENT = PLAN.senders[0]


def bundle(number: int, payload: bytes) -> bytes:
    return pack_bundle(message_id(CLIENT, number), [0], [payload])


def call(number: int, clock: int) -> Delivered:
    return Delivered(bundle(number, b""), (0,), CLIENT, Stamp(clock, 1))


def answer(number: int, clock: int, total: int) -> Replied:
    return Replied(0, bundle(number, ADD.pack_result(total)), Stamp(clock, 1), 0)


LOG = (call(1, 5), call(2, 7))


@pytest.mark.parametrize(
    ("client", "fault"),
    [
        ((answer(1, 5, 1), answer(2, 7, 3)), None),
        ((answer(3, 9, 6),), None),  # the replica may not have got so far
        ((answer(2, 7, 2),), "is 2, but 3 by the log of node 0"),
        ((answer(2, 6, 3),), "is not in the log of node 0"),
        ((answer(3, 6, 4),), "is not in the log of node 0"),
    ],
)
def test_answers_must_be_in_the_log_with_their_results(client: History, fault: str | None) -> None:
    found = PROPERTIES.together(0, LOG, CLIENT, client)
    assert found == PROPERTIES.together(CLIENT, client, 0, LOG)
    assert (found is None) if fault is None else (found is not None and fault in found)


@pytest.mark.parametrize(
    ("one", "other", "fault"),
    [
        (LOG, LOG[:1], None),
        (LOG, (LOG[1],), "nodes 0 and 1 have different logs"),
        (LOG, (call(2, 5), call(1, 7)), "nodes 0 and 1 have different logs"),
    ],
)
def test_replicas_must_have_one_log(one: History, other: History, fault: str | None) -> None:
    found = PROPERTIES.together(0, one, 1, other)
    assert (found is None) if fault is None else (found is not None and fault in found)


def test_a_replica_delivers_by_rising_places_and_nothing_twice() -> None:
    assert PROPERTIES.alone(0, LOG) is None
    assert "places that do not rise" in str(PROPERTIES.alone(0, LOG[::-1]))
    assert "a call twice" in str(PROPERTIES.alone(0, (call(1, 5), call(1, 6))))
    assert "a call twice" in str(PROPERTIES.alone(CLIENT, (answer(1, 5, 1), answer(1, 6, 1))))


def test_a_run_ends_when_all_replicas_have_what_one_has_and_clients_were_told() -> None:
    ended: dict[int, History] = {0: LOG, 1: LOG, 2: LOG, CLIENT: (answer(2, 7, 3),)}
    assert PROPERTIES.unsettled(ended, ()) is None
    assert "node 1 has delivered 3#1" in str(PROPERTIES.unsettled(ended | {1: LOG[:1]}, ()))
    assert PROPERTIES.unsettled({0: (), 1: (), 2: (), CLIENT: (answer(2, 7, 3),)}, ()) is not None


def test_the_command_explores_a_protocol_without_a_specification(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["model", "nobody", "--code-only"]) == 2
    assert (
        "no small runs of nobody can be explored; those of hydra, hydra_paxos can" in capsys.readouterr().err
    )
    assert run(["model", "hydra_paxos", "--spec-only"]) == 2
    assert "there is no specification of hydra_paxos" in capsys.readouterr().err
