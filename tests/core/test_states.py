"""Life cycles: what the table has happens, what it does not have is refused."""

from enum import Enum

import pytest

from ordercast.core import LifeCycle, LocalError, OrdercastError, RemoteError
from tests.core.life_cycles import all_life_cycles, events, reachable, states

LIVES = all_life_cycles()


class Light(Enum):
    OFF = "off"
    ON = "on"


class Switch(Enum):
    UP = "up"
    DOWN = "down"


TABLE = {(Light.OFF, Switch.UP): Light.ON, (Light.ON, Switch.DOWN): Light.OFF}


def test_an_event_leads_to_the_state_in_the_table() -> None:
    life = LifeCycle("light", (Light.OFF,), TABLE)
    assert life.after(Light.OFF, Switch.UP) is Light.ON
    assert life.after(Light.ON, Switch.DOWN) is Light.OFF


def test_any_other_event_is_refused_and_the_error_names_all_three() -> None:
    life = LifeCycle("light", (Light.OFF,), TABLE)
    with pytest.raises(LocalError, match=r"^light: event 'down' is not allowed in state 'off'$"):
        life.after(Light.OFF, Switch.DOWN)


def test_who_is_to_blame_is_said_with_the_table() -> None:
    life = LifeCycle("light", (Light.OFF,), TABLE, blame=RemoteError)
    with pytest.raises(RemoteError):
        life.after(Light.ON, Switch.UP)


def test_all_life_cycles_are_looked_at() -> None:
    names = {name.rpartition(".")[2] for name in LIVES}
    assert {"LANE_LIFE", "STEP_LIFE", "SEQUENCER_LIFE", "NEWCOMER_LIFE", "ROLES"} <= names


@pytest.mark.parametrize("name", LIVES)
def test_every_state_and_every_event_has_a_use(name: str) -> None:
    life = LIVES[name]
    assert reachable(life) == set(states(life))
    assert {event for _, event in life.table} == set(events(life))


@pytest.mark.parametrize("name", LIVES)
def test_what_is_not_in_the_table_is_refused(name: str) -> None:
    life = LIVES[name]
    refused = 0
    for state in states(life):
        for event in events(life):
            if (state, event) not in life.table:
                refused += 1
                with pytest.raises(OrdercastError, match="in state"):
                    life.after(state, event)
    assert refused > 0
