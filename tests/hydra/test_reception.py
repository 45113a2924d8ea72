"""The reception, with an owner that decides on gaps itself."""

from collections.abc import Iterable

from ordercast.components.network_ordered import LogPlace
from ordercast.protocols.hydra.lane import Lane
from ordercast.protocols.hydra.messages import Announce, Flush, Groupcast, Plans, Step
from ordercast.protocols.hydra.options import HydraOptions
from ordercast.protocols.hydra.reception import Reception
from ordercast.testing import RecordingEnv

SERVICE = (31, 32, 33)
OPTIONS = HydraOptions(flush="periodic", flush_ns=1_000_000)


class Lab:
    """An owner that notes what it is told."""

    def __init__(self) -> None:
        self.order: list[int] = []
        self.gaps: dict[int, list[int]] = {}
        self.steps: list[Step] = []
        self.env = RecordingEnv(0)
        self.reception = Reception(self.env, self, 0, 1, SERVICE, None, OPTIONS, lambda: None, eager=True)
        self.reception.begin({1: 21, 2: 22})

    def ordered(self, packet: Groupcast) -> None:
        """Note its clock."""
        self.order.append(packet.clock)

    def needed(self, lane: Lane) -> bool:
        """Nothing is given up here."""
        return False

    def missing(self, lane: Lane) -> None:
        """Note the numbers."""
        self.gaps[lane.sequencer] = self.reception.missing(lane)

    def decided(self, step: Step) -> None:
        """Note it."""
        self.steps.append(step)

    def changed(self, step: Step) -> None:
        """Nothing."""

    def take(self) -> list[int]:
        """The clocks of what was delivered since the last time this was asked."""
        self.gaps.clear()
        self.reception.advance()
        taken, self.order = self.order, []
        return taken

    def hears(self, *packets: Groupcast | Flush) -> list[int]:
        """What is delivered when these come."""
        for packet in packets:
            if isinstance(packet, Flush):
                self.reception.on_flushes(packet)
            else:
                self.reception.on_groupcast(packet)
        return self.take()

    def removes(self, sequencer: int, number: int, clock: int) -> None:
        """A sequencer is removed after this number."""
        step = Step("removed", sequencer, 20 + sequencer, 1, clock, (number,))
        self.reception.on_configuration(31, Announce(1, ((2, 22),), None, step))


def packet(sequencer: int, number: int, clock: int) -> Groupcast:
    """A packet of a sequencer."""
    return Groupcast(sequencer, clock, (0,), (number,), 9, b"")


def packets(sequencer: int, clocks: Iterable[int]) -> list[Groupcast]:
    """The first packets of a sequencer, with these clocks."""
    return [packet(sequencer, number, clock) for number, clock in enumerate(clocks, 1)]


def test_a_gap_is_told_as_soon_as_it_is_known() -> None:
    lab = Lab()
    assert lab.hears(packet(1, 2, 20)) == []
    assert lab.gaps == {1: [1]}, "no message needs number 1 yet: sequencer 2 may bring an earlier one"


def test_delivery_does_not_pass_a_gap_that_nobody_has_decided_on() -> None:
    lab = Lab()
    assert lab.hears(packet(1, 2, 20), Flush(2, 50, (0,))) == []


def test_a_number_that_is_settled_is_passed() -> None:
    lab = Lab()
    lab.hears(packet(1, 2, 20), Flush(2, 50, (0,)))
    lab.reception.settle(1, 1)
    assert lab.take() == [20]
    assert lab.hears(packet(1, 1, 10)) == [], "its packet does not count any more"
    assert lab.gaps == {}


def test_a_number_may_be_settled_before_its_turn() -> None:
    lab = Lab()
    lab.hears(packet(1, 1, 10), packet(1, 4, 40))
    lab.reception.settle(1, 3)
    assert lab.take() == []
    assert lab.gaps == {1: [2]}
    assert lab.hears(packet(1, 2, 20), Flush(2, 50, (0,))) == [10, 20, 40]


def test_a_number_whose_packet_waits_may_be_settled() -> None:
    lab = Lab()
    lab.hears(*packets(1, (10, 20, 30)), packet(1, 5, 50))
    lab.reception.settle(1, 2)
    lab.reception.settle(1, 5)
    assert lab.reception.find(1, 2) is None
    assert lab.reception.find(1, 5) is None
    assert lab.hears(packet(1, 4, 40), Flush(2, 90, (0,))) == [10, 30, 40]


def test_a_number_that_nobody_here_has_heard_of_may_be_settled() -> None:
    lab = Lab()
    lab.reception.settle(1, 2)
    lab.take()
    assert lab.gaps == {1: [1]}
    assert lab.hears(packet(1, 1, 10), packet(1, 3, 30), Flush(2, 90, (0,))) == [10, 30]


def test_a_number_that_somebody_lacks_exists() -> None:
    lab = Lab()
    lab.reception.exists(2, 2)
    lab.take()
    assert lab.gaps == {2: [1, 2]}


def test_a_packet_that_is_found_falls_into_its_place() -> None:
    lab = Lab()
    lab.hears(packet(1, 2, 20), *packets(2, (15, 25)), packet(1, 3, 30))
    assert lab.reception.offer(packet(1, 1, 17))
    assert lab.take() == [15, 17, 20, 25]


def test_what_waits_is_found_by_its_number() -> None:
    lab = Lab()
    lab.hears(*packets(1, (10, 20)), packet(1, 4, 40))
    assert [lab.reception.find(1, number) is not None for number in (1, 2, 3, 4)] == [True, True, False, True]
    assert lab.reception.find(7, 1) is None


def test_nothing_is_delivered_while_it_holds() -> None:
    lab = Lab()
    lab.reception.holds = True
    assert lab.hears(packet(1, 1, 10), Flush(2, 50, (0,))) == []
    lab.reception.holds = False
    assert lab.take() == [10]


def test_it_goes_back_to_a_place() -> None:
    lab = Lab()
    lab.hears(*packets(1, (10,)), Flush(2, 11, (0,)))
    place = lab.reception.place
    assert place == LogPlace(10, 1, ((1, 1), (2, 0)))
    assert lab.hears(packet(1, 2, 20), packet(1, 3, 30), Flush(2, 25, (0,))) == [20]
    lab.reception.reset(place, [packet(1, 2, 20)])
    assert lab.reception.place == place
    assert lab.hears(Flush(2, 35, (0,))) == [20, 30]


def test_going_back_without_a_packet_leaves_a_gap() -> None:
    lab = Lab()
    place = lab.reception.place
    lab.hears(*packets(1, (10, 20)), Flush(2, 25, (0,)))
    lab.reception.reset(place, [packet(1, 2, 20)])
    assert lab.take() == []
    assert lab.gaps == {1: [1]}


def test_it_goes_back_with_numbers_that_are_settled() -> None:
    lab = Lab()
    place = lab.reception.place
    lab.hears(packet(1, 2, 20), Flush(2, 25, (0,)))
    lab.reception.settle(1, 1)
    assert lab.take() == [20]
    lab.reception.reset(place, [packet(1, 2, 20)], [(1, 1)])
    assert lab.take() == [20]


def test_it_goes_ahead_to_a_place() -> None:
    lab = Lab()
    lab.hears(packet(1, 1, 10), packet(1, 3, 30), packet(1, 4, 40))
    lab.reception.reset(LogPlace(30, 1, ((1, 3), (2, 1))))
    assert lab.hears(Flush(2, 50, (1,))) == [40]
    assert lab.gaps == {}


def test_a_lane_that_a_place_does_not_name_goes_back_to_its_start() -> None:
    lab = Lab()
    lab.hears(*packets(1, (10, 20)), Flush(2, 25, (0,)))
    lab.reception.reset(LogPlace(), packets(1, (10, 20)))
    assert lab.take() == [10, 20]


def test_going_back_crosses_a_removal() -> None:
    lab = Lab()
    place = lab.reception.place
    lab.hears(*packets(1, (10, 20)), *packets(2, (15,)))
    lab.removes(1, 2, 20)
    assert lab.hears(Flush(2, 90, (1,))) == [20]
    lab.reception.reset(place, [*packets(1, (10, 20)), *packets(2, (15,))])
    assert lab.take() == [10, 15, 20], "the lane is kept until it is discarded"
    lab.reception.discard(1)
    assert lab.reception.place.numbers == ((2, 1),)


def test_what_lies_beyond_the_end_of_a_removed_sequencer_is_cut_off_on_the_way_back() -> None:
    lab = Lab()
    place = lab.reception.place
    lab.hears(*packets(1, (10, 20)), Flush(2, 25, (0,)))
    lab.removes(1, 1, 20)
    lab.reception.reset(place, packets(1, (10, 20)))
    assert lab.take() == [10]
    assert lab.gaps == {}


def test_a_decided_step_is_told_before_delivery_reaches_it() -> None:
    lab = Lab()
    lab.removes(1, 0, 500)
    assert [step.sequencer for step in lab.steps] == [1]


def test_a_new_sequencer_begins_above_all_that_was_ever_delivered() -> None:
    lab = Lab()
    place = lab.reception.place
    lab.hears(*packets(1, (10, 20)), Flush(2, 25, (0,)))
    lab.reception.reset(place)
    lab.reception.on_configuration(31, Announce(0, ((1, 21), (2, 22)), Plans("added", 3, 23), None))
    lab.hears(Flush(3, 15, (0,)))
    assert lab.reception.follower.planned.report is None, "20 may have been answered before it went back"
    lab.hears(Flush(3, 21, (0,)))
    assert lab.reception.follower.planned.report is not None
