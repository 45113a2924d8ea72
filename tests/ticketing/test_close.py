"""The end of a view: messages of one sender keep their order, also if one of them has no ticket."""

from ordercast.components.ticketing.messages import DataMessage, Header, Key, Sequencer
from ordercast.components.ticketing.ordering import Ordering


def test_a_later_message_does_not_pass_one_whose_ticket_was_of_an_earlier_view() -> None:
    ordering = Ordering()
    ordering.enter(2, (0, 1), (0, 1), None)
    stale, fresh = Header(1, 5, 0, 0, ((5, 1, 1),)), Header(2, 7, 0, 0, ((7, 1, 2),))
    ordering.stays[1] = 1
    for count, header in ((1, stale), (2, fresh)):
        ordering.receive(1, DataMessage(header, count, Sequencer(1, 1), (0,), b"x"), 0)
    assert ordering.close() == []
    assert list(ordering.waiting) == [Key(1, 1), Key(1, 2)], "both get tickets in the next view"
