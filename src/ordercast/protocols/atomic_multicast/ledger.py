"""What a group's log says: its clock, and which messages it has given which timestamps.

Everything here follows from the applied commands alone, so it is the same on all replicas of a
group at the same slot. A message is ordered once: a client's numbers are remembered from its floor
on, and below the floor all of them count as known.

When a timestamp may be forgotten. A receiver of another group that misses the final number asks for
the timestamps again, so a group keeps them until no destination group needs to ask. A client lets
its floor pass a message when the logs of all its groups have recorded the final number; from then
on each receiver finds it in its own group's log. A client that crashes leaves at most `backlog`
timestamps of one integer each. Of one client, the last `LIVES_MAX` lives are remembered, and
messages of older ones are refused.
"""

import msgspec

from ordercast.core import NodeId
from ordercast.protocols.atomic_multicast.messages import Key, Request

LIVES_MAX = 1024


class Life(msgspec.Struct):
    """Messages of one client between two restarts: the floor, and timestamps from there on."""

    floor: int = 0
    clocks: dict[int, int] = {}

    def raise_floor(self, floor: int) -> None:
        """Forget the timestamps below."""
        if floor - self.floor > len(self.clocks):
            self.clocks = {number: clock for number, clock in self.clocks.items() if number >= floor}
        else:
            for number in range(self.floor, floor):
                self.clocks.pop(number, None)
        self.floor = max(self.floor, floor)


class Ledger(msgspec.Struct):
    """The state that a group's log leads to, but for the messages not delivered yet."""

    clock: int = 0
    lives: dict[NodeId, dict[int, Life]] = {}
    """By client and epoch."""
    horizons: dict[NodeId, int] = {}
    """Epochs of a client up to this one are forgotten."""

    def find(self, key: Key) -> int | None:
        """The timestamp that the group gave to a message, if it is still remembered."""
        life = self.lives.get(key[0], {}).get(key[1])
        return None if life is None else life.clocks.get(key[2])

    def knows(self, key: Key) -> bool:
        """Whether a message has been ordered, or can be no more."""
        origin, epoch, number = key
        if epoch <= self.horizons.get(origin, -1):
            return True
        life = self.lives.get(origin, {}).get(epoch)
        return life is not None and (number < life.floor or number in life.clocks)

    def floor(self, key: Key) -> int:
        """Numbers of a message's client below this are settled everywhere, as far as this group knows."""
        life = self.lives.get(key[0], {}).get(key[1])
        return 0 if life is None else life.floor

    def pass_clock(self, hint: int) -> None:
        """No later timestamp will be at or below this clock."""
        self.clock = max(self.clock, hint)

    def order(self, request: Request) -> int:
        """Give a message, that is not known yet, its timestamp."""
        self.clock += 1
        lives = self.lives.setdefault(request.origin, {})
        life = lives.get(request.epoch)
        if life is None:
            life = lives[request.epoch] = Life()
            if len(lives) > LIVES_MAX:
                oldest = self.horizons[request.origin] = min(lives)
                del lives[oldest]
        life.raise_floor(request.floor)
        life.clocks[request.number] = self.clock
        return self.clock
