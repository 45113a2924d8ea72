"""Which requests of which senders a receiver has delivered, by sequencer.

When a sequencer is removed, a sender asks what became of its requests (`Keeper`). A receiver knows that if it
settled all numbers of the sequencer and missed none. It answers when it has passed into the configuration
without the sequencer, and not before: until then more of its messages may come.
"""

from ordercast.core import NodeId, Seen
from ordercast.protocols.hydra.messages import Groupcast, Inquiry, Outcome

ENDED_MAX = 64
"""Of so many removed sequencers the requests are remembered."""


class _Lane:
    __slots__ = ("seen", "whole")

    def __init__(self, *, whole: bool) -> None:
        self.seen: dict[NodeId, Seen] = {}
        self.whole = whole
        """Whether no number of the sequencer was missed."""


class Origins:
    """The requests that were delivered."""

    __slots__ = ("_ended", "_lanes", "_window")

    def __init__(self, window: int) -> None:
        self._window = window
        self._lanes: dict[int, _Lane] = {}
        self._ended: dict[int, _Lane] = {}

    def begin_late(self, sequencers: list[int]) -> None:
        """An earlier life of this receiver has delivered messages of these; it is not known which."""
        for sequencer in sequencers:
            self._lanes[sequencer] = _Lane(whole=False)

    def add(self, packet: Groupcast) -> None:
        """A packet is delivered."""
        lane = self._lanes.get(packet.sequencer)
        if lane is None:
            lane = self._lanes[packet.sequencer] = _Lane(whole=True)
        seen = lane.seen.get(packet.sender)
        if seen is None:
            seen = lane.seen[packet.sender] = Seen(self._window)
        seen.admit(packet.request)

    def miss(self, sequencer: int) -> None:
        """A number of a sequencer is given up: nobody here knows what it was."""
        lane = self._lanes.get(sequencer)
        if lane is None:
            self._lanes[sequencer] = _Lane(whole=False)
        else:
            lane.whole = False

    def end(self, sequencer: int, *, beyond: bool) -> None:
        """A sequencer is removed, and all its numbers are settled.

        If this receiver has seen numbers `beyond` those agreed upon, it may have delivered what no other
        receiver will (Appendix B), and its answer would mislead.
        """
        lane = self._lanes.pop(sequencer, _Lane(whole=True))
        self._ended[sequencer] = _Lane(whole=False) if beyond else lane
        if len(self._ended) > ENDED_MAX:
            del self._ended[next(iter(self._ended))]

    def outcome(self, sender: NodeId, inquiry: Inquiry) -> Outcome:
        """What became of the requests of a sender to a sequencer that is removed."""
        lane = self._ended.get(inquiry.sequencer)
        came, absent, unknown = [], [], []
        for number in inquiry.numbers:
            seen = None if lane is None else lane.seen.get(sender)
            has = False if seen is None else seen.has(number)
            if has:
                came.append(number)
            elif lane is None or not lane.whole or has is None:
                unknown.append(number)
            else:
                absent.append(number)
        return Outcome(inquiry.sequencer, tuple(came), tuple(absent), tuple(unknown))
