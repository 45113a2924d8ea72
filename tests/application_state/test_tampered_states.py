"""Both judges find the same in traces whose rows about states were changed; and states keep the contract."""

from random import Random

import pytest

from ordercast.catalogue import find_protocol
from ordercast.core import Deployment, Plan
from ordercast.sim.conformance import conformance
from ordercast.sim.run import simulate
from ordercast.trace import Event, Kind
from tests.application_state.test_transfers import PROTOCOLS, storm
from tests.audit.tampering import foresees, swap, tampered
from tests.audit.test_both_judges import columns_say, oracles_say
from tests.deep import deep_after

KINDS = (Kind.STATE, Kind.STATE_WANTED, Kind.GIVE_STATE, Kind.JOINED)
CHANGES = 8


def changed(events: list[Event], seed: int) -> list[Event]:
    """The same events, with one row about states taken out, doubled, moved or changed."""
    rng, events = Random(seed), list(events)
    row = rng.choice([row for row, event in enumerate(events) if event.kind in KINDS])
    event = events[row]
    following = next((r for r in range(row + 1, len(events)) if events[r].node == event.node), row)
    match rng.randrange(6):
        case 0:
            del events[row]
        case 1:
            events.insert(row, event)
        case 2:
            swap(events, row, following)
        case 3:
            events[row] = event._replace(config=(event.config or 0) + rng.choice((-1, 1)))
        case 4:
            events[row] = event._replace(peer=rng.choice((None, 0, 1, 2)))
        case _:
            events[row] = event._replace(digest=5)
    return events


@pytest.mark.parametrize("protocol", ["view_synchronous", "token_site"])
@pytest.mark.parametrize("seed", deep_after(1, range(20)))
def test_both_judges_find_the_same_in_tampered_states(protocol: str, seed: int) -> None:
    run = simulate(storm(protocol, seed))
    found: set[str] = set()
    for number in range(CHANGES):
        make = changed if number % 4 else tampered
        events = make(list(run.events()), 1000 * seed + number)
        if foresees(events):
            continue
        told = oracles_say(run.description, events)
        assert columns_say(run.description, events) == told, (protocol, seed, number)
        found |= told
    assert "state-transfer" in found


@pytest.mark.parametrize(("protocol", "seed"), deep_after(1, [(p, s) for p in PROTOCOLS for s in range(4)]))
def test_members_with_states_keep_the_contract(protocol: str, seed: int) -> None:
    found = find_protocol(protocol)

    def plan(deployment: Deployment) -> Plan:
        return found.deploy(deployment, found.options(application_state=True))

    assert conformance(plan, (seed,)) == []
