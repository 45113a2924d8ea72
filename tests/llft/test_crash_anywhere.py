"""A message is lost, or a process crashes, at any step of an exchange, of a change of the primary, of a join:
no promise is broken.

Each script runs once for each message that it sends, and each trouble. Whoever has crashed comes back at the
end, without its state.
"""

import pytest

from ordercast.core import Message, NodeId
from ordercast.replication.llft.messages import MESSAGES
from tests.deep import deep_after
from tests.hand_driven import Strike
from tests.llft.lab import kinds
from tests.llft.scripts import COMING, SCRIPTS, Script, a_partition, lab_for

STRIDE = 24
"""Each so many of the steps of a script is tried with each trouble; deep tests try the steps between them."""
PARTS = (range(1), *(range(first, first + 6) for first in (1, 7, 13)), range(19, STRIDE))
TROUBLES = ("lost", "before", "after", "sender", "primaries")
OPTIONS: dict[str, dict[str, object]] = {
    "semi-active": {},
    "majority": {"require_majority": True},
    "semi-passive": {"replication": "semi-passive", "update_every": 1},
    "semi-passive majority": {"replication": "semi-passive", "update_every": 1, "require_majority": True},
}


def any_message(source: NodeId, to: NodeId, message: Message) -> bool:
    """Every message."""
    return True


def run(script: Script, options: str, strike: Strike) -> bool:
    """Run a script with trouble at a step; False if it has no such step."""
    lab = lab_for(script, **OPTIONS[options])
    lab.strike = strike
    script(lab)
    if lab.struck is None:
        return False
    # What a primary that is cut off has delivered alone is lost with it.
    found = lab.finish(uniform=script is not a_partition)
    assert found == set(), f"{strike.how} at step {strike.nth}, node {lab.struck}: {lab.details}"
    return True


@pytest.mark.parametrize("part", deep_after(1, PARTS), ids=lambda part: f"from-{part[0]}")
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("script", (*SCRIPTS, *COMING), ids=lambda script: script.__name__)
def test_trouble_at_any_step_breaks_no_promise(script: Script, options: str, part: range) -> None:
    for offset in part:
        for place, trouble in enumerate(TROUBLES):
            step = 1 + (len(script.__name__) + 5 * place + offset) % STRIDE
            while run(script, options, Strike(any_message, step, trouble)):
                step += STRIDE
            assert step > STRIDE, "the script has many steps"


@pytest.mark.parametrize("target", deep_after(1, [None, *range(5)]))
@pytest.mark.parametrize("kind", MESSAGES, ids=lambda kind: kind.__name__)
def test_every_message_may_be_lost(kind: type[Message], target: NodeId | None) -> None:
    """The first of its type, and the first three; or the first ones to one process."""
    sent = 0
    for script in (*SCRIPTS, *COMING):
        for options in OPTIONS:
            for count in (1, 3):
                lab = lab_for(script, **OPTIONS[options])
                lab.lose(kinds(kind, to=target), count)
                script(lab)
                assert lab.finish() == set(), f"{script.__name__}, {options}, {count} lost: {lab.details}"
                sent += lab.count(kind)
    assert sent > 0, f"no script sends a {kind.__name__}"
