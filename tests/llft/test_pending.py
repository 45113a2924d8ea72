"""States with what no application was told of: nobody is answered too early, and it is told once."""

import pytest

from ordercast.core import RemoteError, message_id
from ordercast.core.bundle import pack_bundle
from ordercast.replication.llft.lineage import Begun
from ordercast.replication.llft.names import Link, ViewId
from ordercast.replication.llft.notices import CallNews, Pending, ViewNews
from tests.llft import plays_pending


@pytest.mark.parametrize("replication", ["semi-active", "semi-passive"])
@pytest.mark.parametrize("forgets", [False, True])
def test_who_forgets_its_earlier_life_tells_too(replication: str, forgets: bool) -> None:
    play = plays_pending.a_newcomer_follows_a_primary_that_has_told_nobody
    assert play(forgets=forgets, replication=replication) == set()
    assert plays_pending.a_newcomer_has_calls_of_an_earlier_view(forgets=forgets) == set()


def test_a_state_is_refused_that_is_at_odds_with_itself() -> None:
    """Places behind it or settled already, views that have not begun, messages that were not produced."""
    bundle = pack_bundle(message_id(3, 1), [1], [b"a"])
    link, views, members = Link(7, 0, 1), (Begun(ViewId(0, 0), 0), Begun(ViewId(1, 1), 5)), (0, 1)
    sound = Pending(4, members, (ViewNews(5, members), CallNews(6, 3, bundle)), ((6, link, 2), (6, link, 3)))
    sound.check(6, views, {link: 3})
    wrong = (
        Pending(4, members, (CallNews(4, 3, bundle),), ()),
        Pending(4, members, (CallNews(7, 3, bundle),), ()),
        Pending(4, members, (CallNews(6, 3, bundle), CallNews(6, 3, bundle)), ()),
        Pending(4, members, (CallNews(6, 3, b"no bundle"),), ()),
        Pending(4, members, (ViewNews(6, members),), ()),
        Pending(4, members, (), ((4, link, 1),)),
        Pending(4, members, (), ((7, link, 1),)),
        Pending(4, members, (), ((6, link, 2), (5, link, 3))),
        Pending(4, members, (), ((6, link, 4),)),
    )
    for pending in wrong:
        with pytest.raises(RemoteError):
            pending.check(6, views, {link: 3})


def test_what_is_not_settled_travels_in_parts() -> None:
    play = plays_pending.a_newcomer_follows_a_primary_that_has_told_nobody
    assert play(text="b" * 150_000) == set()
