"""The one sentence about a message, from made-up facts."""

import msgspec
import pytest

from ordercast.core import SECOND, Explanation, LocalError, MessageId, Wait, message_id
from ordercast.core.bundle import Item, pack
from ordercast.net.tools.facts import HostFact, NodeFact, SenderFact, WaitFact, node_fact, roles_text
from ordercast.net.tools.progress import RUNS_MAX, Progress
from ordercast.net.tools.why import parse_message, why_message, why_oldest

M17 = message_id(3, 17)


def wait(
    first: MessageId | None, count: int = 1, age_ns: int = 3_100_000_000, blocker: str = "x"
) -> WaitFact:
    return WaitFact("a bundle", blocker, age_ns, first, count)


def receiver(*waits: WaitFact, delivered: tuple[tuple[int, int], ...] = ()) -> NodeFact:
    runs = tuple((message_id(3, first), message_id(3, end)) for first, end in delivered)
    return NodeFact("receiver", waiting=len(waits), waits=waits, delivered=runs)


def sender(first: int, following: int, backlog: int = 0, *waits: WaitFact, blocked: str = "") -> NodeFact:
    fact = SenderFact(message_id(3, first), message_id(3, following), backlog, blocked)
    return NodeFact("sender", waits=waits, sender=fact)


def test_a_message_is_written_with_its_sender_and_its_number() -> None:
    assert parse_message("3#17") == M17


@pytest.mark.parametrize(
    "text", ["", "3", "#", "3#", "#17", "3#x", "-3#17", "3#17#1", "3# 17", "9999999999#1"]
)
def test_what_is_no_message_is_refused(text: str) -> None:
    with pytest.raises(LocalError, match="message"):
        parse_message(text)


def test_it_says_where_a_message_waits_for_what_and_how_long() -> None:
    blocker = "the clock of sequencer 2, which is at 8 and must reach 10"
    answer = why_message(M17, [HostFact(1, {1: receiver(wait(M17, blocker=blocker))})], {})
    assert answer.sentence == f"message 3#17 has waited 3.1 s at node 1 (receiver, host 1) for {blocker}."
    assert (answer.verdict, answer.node, answer.host, answer.blocker) == ("waiting", 1, 1, blocker)


def test_a_message_in_the_middle_of_a_packet_is_found_and_its_neighbours_are_not() -> None:
    hosts = [HostFact(1, {1: receiver(wait(message_id(3, 15), 3))})]
    assert why_message(M17, hosts, {}).verdict == "waiting"
    assert why_message(message_id(3, 18), hosts, {}).verdict == "unknown"
    assert why_message(message_id(3, 14), hosts, {}).verdict == "unknown"


def test_the_place_where_it_has_waited_longest_is_named_and_the_others_after_it() -> None:
    hosts = [
        HostFact(0, {0: receiver(wait(M17, age_ns=5))}),
        HostFact(1, {1: receiver(wait(M17, age_ns=2 * SECOND, blocker="number 4"))}),
        HostFact(2, {2: receiver(delivered=((0, 20),))}),
    ]
    assert why_message(M17, hosts, {}).sentence == (
        "message 3#17 has waited 2 s at node 1 (receiver, host 1) for number 4"
        "; it also waits at node 0; it was delivered at node 2."
    )


def test_hosts_that_do_not_answer_are_named_with_their_roles() -> None:
    hosts = [HostFact(1, {1: receiver(wait(M17))})]
    answer = why_message(M17, hosts, {5: "sequencer", 4: "receiver and sender"})
    assert answer.sentence.endswith(
        "; host 4 (receiver and sender) does not answer; host 5 (sequencer) does not answer."
    )
    assert answer.absent == (4, 5)


def test_it_says_where_a_message_is_delivered_and_who_went_on_without_it() -> None:
    hosts = [
        HostFact(0, {0: receiver(delivered=((0, 18),))}),
        HostFact(1, {1: receiver(delivered=((0, 17), (18, 19)))}),
        HostFact(2, {2: receiver(delivered=((0, 40),))}),
    ]
    answer = why_message(M17, hosts, {})
    assert answer.sentence == "message 3#17 was delivered at nodes 0, 2; node 1 went on without it."
    assert (answer.verdict, answer.delivered) == ("delivered", (0, 2))


def test_a_node_that_is_not_so_far_did_not_go_on_without_it() -> None:
    hosts = [HostFact(0, {0: receiver(delivered=((0, 18),)), 1: receiver(delivered=((0, 17),))})]
    assert why_message(M17, hosts, {}).sentence == "message 3#17 was delivered at node 0."


def test_a_message_in_the_backlog_is_held_up_by_what_its_sender_says() -> None:
    general = WaitFact("all messages", "a sequencer; none is known to be alive", SECOND)
    answer = why_message(M17, [HostFact(3, {3: sender(0, 20, 5, general)})], {})
    assert answer.sentence == (
        "message 3#17 is in the backlog of sender 3, behind 2 others; "
        "all messages must wait for a sequencer; none is known to be alive."
    )
    assert answer.verdict == "backlog"


def test_or_by_the_pace_of_others_or_by_those_before_it() -> None:
    slow = why_message(M17, [HostFact(3, {3: sender(0, 18, 1, blocked="a receiver is slow")})], {})
    assert (
        slow.sentence
        == "message 3#17 is in the backlog of sender 3, first in line, because a receiver is slow."
    )
    under_way = wait(message_id(3, 1), blocker="a timestamp from group 1")
    held = why_message(M17, [HostFact(3, {3: sender(0, 18, 1, under_way)})], {})
    assert held.sentence.endswith(
        "first in line, held up by earlier messages, which wait for a timestamp from group 1."
    )


@pytest.mark.parametrize(
    ("fact", "verdict", "words"),
    [
        (sender(0, 17), "not-submitted", "sender 3 has not reached this number; its last message is 3#16"),
        (sender(17, 17), "not-submitted", "sender 3 has not reached this number; it has sent none yet"),
        (sender(18, 30), "earlier-life", "from an earlier life of sender 3"),
        (
            sender(0, 30),
            "under-way",
            "no node that answers holds it or has delivered it; it is under way, or lost",
        ),
        (receiver(), "unknown", "node 3, which is not a sender"),
    ],
)
def test_what_is_nowhere_is_told_by_its_sender(fact: NodeFact, verdict: str, words: str) -> None:
    answer = why_message(M17, [HostFact(3, {3: fact})], {})
    assert words in answer.sentence
    assert answer.verdict == verdict


def test_a_message_that_all_went_past_is_not_called_under_way() -> None:
    hosts = [HostFact(3, {1: receiver(delivered=((0, 17), (18, 30))), 3: sender(0, 30)})]
    sentence = why_message(M17, hosts, {}).sentence
    assert sentence.endswith("holds it or has delivered it; node 1 went on without it.")


def test_a_message_of_a_host_that_is_down_is_unknown() -> None:
    answer = why_message(M17, [HostFact(0, {0: receiver()})], {3: "sender"})
    assert answer.sentence == (
        "no node that answers knows message 3#17; it would come from node 3, which does not answer"
        "; host 3 (sender) does not answer."
    )


def test_without_a_message_it_tells_the_oldest_wait_of_all() -> None:
    hosts = [
        HostFact(
            0, {0: receiver(wait(M17, age_ns=5), WaitFact("leadership", "a leader; none is known", None))}
        ),
        HostFact(1, {1: receiver(wait(message_id(3, 9), 4, SECOND, "number 4"))}),
    ]
    assert why_oldest(hosts, {}).sentence == (
        "message 3#9 (a bundle, and 3 more) has waited 1 s at node 1 (receiver, host 1) for number 4."
    )


def test_a_wait_of_unknown_age_is_told_without_one() -> None:
    hosts = [HostFact(0, {0: receiver(WaitFact("leadership", "a leader; none is known", None))})]
    assert (
        why_oldest(hosts, {}).sentence
        == "leadership waits at node 0 (receiver, host 0) for a leader; none is known."
    )


def test_without_waits_it_tells_backlogs_and_without_those_that_nothing_waits() -> None:
    backlogs = [HostFact(3, {3: sender(0, 20, 5, blocked="a receiver is slow")})]
    assert why_oldest(backlogs, {}).sentence == (
        "sender 3 has 5 messages in its backlog, because a receiver is slow."
    )
    idle = [HostFact(3, {3: sender(0, 20)})]
    assert why_oldest(idle, {}).sentence == "nothing waits."
    assert why_oldest(idle, {7: "sequencer"}).sentence == (
        "nothing waits at the hosts that answer; host 7 (sequencer) does not answer."
    )


# Facts


def packet(first: MessageId, count: int) -> bytes:
    return pack([Item(first + index, 1, b"") for index in range(count)])


def test_facts_name_the_messages_in_a_packet_and_how_long_it_waits() -> None:
    explanation = Explanation({"role": "receiver"}, (Wait("p", "b", 400, packet(M17, 3)),))
    (fact,) = node_fact("receiver", explanation, 1_000).waits
    assert (fact.first, fact.count, fact.age_ns) == (M17, 3, 600)


def test_a_wait_since_always_has_no_age_and_one_since_later_has_none_below_zero() -> None:
    explanation = Explanation({}, (Wait("a", "b", 0), Wait("c", "d", 2_000)))
    assert [fact.age_ns for fact in node_fact("r", explanation, 1_000).waits] == [None, 0]


def test_a_packet_that_is_no_bundle_still_waits() -> None:
    explanation = Explanation({}, (Wait("p", "b", 1, b"rubbish"),))
    (fact,) = node_fact("r", explanation, 2, asked=M17).waits
    assert (fact.first, fact.count) == (None, 0)


def test_of_many_waits_the_oldest_are_told_and_those_of_the_message_asked_for() -> None:
    waits = tuple(Wait(f"p{n}", "b", 1000 - n, packet(message_id(3, n), 1)) for n in range(100))
    fact = node_fact("r", Explanation({}, waits), 2_000, asked=message_id(3, 5))
    assert fact.waiting == 100
    assert [wait.subject for wait in fact.waits] == [*(f"p{n}" for n in range(99, 79, -1)), "p5"]


def test_facts_survive_json() -> None:
    progress = Progress()
    progress.add(M17, 4)
    explanation = Explanation({"group": 1}, (Wait("p", "b", 1, packet(M17, 2)),))
    sender_fact = SenderFact(M17, M17 + 4, 2, "slow")
    fact = node_fact("r", explanation, 9, asked=M17, progress=progress, sender=sender_fact)
    host = HostFact(2, {7: fact})
    assert msgspec.json.decode(msgspec.json.encode(host), type=HostFact) == host
    assert fact.delivered == ((M17, M17 + 4),)


@pytest.mark.parametrize(
    ("roles", "text"),
    [
        ({}, "no role"),
        ({4: "sequencer"}, "sequencer"),
        ({0: "receiver", 3: "sender"}, "receiver and sender"),
        ({0: "a", 1: "b", 2: "b", 3: "c"}, "a, b and c"),
    ],
)
def test_the_roles_of_a_host_in_words(roles: dict[int, str], text: str) -> None:
    assert roles_text(roles) == text


# Progress


def runs_of(*added: tuple[int, int]) -> list[tuple[int, int]]:
    progress = Progress()
    for first, count in added:
        progress.add(first, count)
    return progress.runs(0)


def test_what_follows_on_makes_one_run() -> None:
    assert runs_of((0, 3), (3, 1), (4, 6)) == [(0, 10)]


def test_a_gap_makes_two_and_what_fills_it_makes_one_again() -> None:
    assert runs_of((0, 3), (5, 2)) == [(0, 3), (5, 7)]
    assert runs_of((0, 3), (5, 2), (3, 2)) == [(0, 7)]


def test_what_comes_in_any_order_or_twice_is_one_run_in_the_end() -> None:
    assert runs_of((4, 2), (0, 2), (2, 2), (0, 6)) == [(0, 6)]


def test_only_the_latest_runs_are_kept() -> None:
    found = runs_of(*((3 * index, 1) for index in range(200)))
    assert len(found) == RUNS_MAX
    assert found[-1] == (597, 598)


def test_senders_are_told_apart() -> None:
    progress = Progress()
    progress.add(message_id(3, 0), 2)
    progress.add(message_id(4, 0), 1)
    assert progress.runs(3) == [(message_id(3, 0), message_id(3, 2))]
    assert progress.runs(5) == []


def test_the_chain_of_waits_is_followed_to_its_cause() -> None:
    held = msgspec.structs.replace(wait(M17, blocker="number 4 of node 7"), on=(7,))
    step = WaitFact("step 2", "a report from nodes 8", SECOND, on=(8,))
    hosts = [HostFact(1, {1: receiver(held)}), HostFact(7, {7: receiver(WaitFact("x", "y", 5), step)})]
    answer = why_message(M17, hosts, {8: "service"})
    assert answer.cause == 8
    assert answer.sentence == (
        "message 3#17 has waited 3.1 s at node 1 (receiver, host 1) for number 4 of node 7"
        "; at node 7 step 2 waits for a report from nodes 8"
        "; the cause is at node 8, which does not answer; host 8 (service) does not answer."
    )
    quiet = [*hosts, HostFact(8, {8: receiver()})]
    assert "the cause is at node 8, which waits for nothing itself." in why_oldest(quiet, {}).sentence
