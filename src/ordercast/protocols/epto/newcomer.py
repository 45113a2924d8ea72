"""What a peer that has just started waits for before it broadcasts: some peers to tell, and the logical time.

A view that is being filled may hold nobody for a while, and a ball thrown to nobody is an event that nobody
else will ever hear of. A logical clock is worth something only if it is not far behind: the events of a peer
that has just started would come before what all others have delivered, and be lost. So a newcomer waits until
it knows as many peers as a ball goes to, and asks them for the time until half of them have answered; but no
longer than an event lives. The paper takes both for given, and does not say how a joining process comes to
them.

A peer that has heard nothing for as long as an event lives cannot tell silence from a partition. If it was
cut off, its logical clock is behind like that of a newcomer. So it asks for the time before it broadcasts
again, once. So does a peer that comes to a round more than a round too late, because it stood still: what it
hears then has waited as long, and on a fast network events are delivered after few rounds.

- *asking*: it does not know the time, and asks for it.
- *filling*: it knows the time, or needs none, and waits until its view holds enough peers.
- *ready*: it broadcasts.
"""

from enum import Enum

from ordercast.components.sampling import Sampler
from ordercast.core import Env, LifeCycle, Nanos, NodeId
from ordercast.protocols.epto.messages import Hello


class NewcomerState(Enum):
    """What a newcomer waits for."""

    ASKING = "asking"
    FILLING = "filling"
    READY = "ready"


class NewcomerEvent(Enum):
    """What happens to a newcomer."""

    LEARN = "learn"
    FILL = "fill"
    GIVE_UP = "give up"
    DOUBT = "doubt"


ASKING, FILLING, READY = NewcomerState

NEWCOMER_LIFE = LifeCycle(
    "newcomer",
    (ASKING, FILLING),
    {
        (ASKING, NewcomerEvent.LEARN): FILLING,
        (FILLING, NewcomerEvent.FILL): READY,
        (ASKING, NewcomerEvent.GIVE_UP): READY,
        (FILLING, NewcomerEvent.GIVE_UP): READY,
        (READY, NewcomerEvent.DOUBT): ASKING,
    },
)

ASK = "ask"
EVERY_ROUNDS = 4
BEFORE_ROUNDS = 1 << 40
"""Names the choices of whom to ask, each time others; no round has such a number."""


class Newcomer:
    """Waits until it knows enough, and again when it doubts the time."""

    def __init__(
        self, env: Env, sampler: Sampler, count: int, ttl: int, round_ns: Nanos, *, asks_time: bool
    ) -> None:
        self._env = env
        self._sampler = sampler
        self._count = count
        self._every = EVERY_ROUNDS * round_ns
        self._tries = 1 + ttl // EVERY_ROUNDS
        self._asks_time = asks_time and count > 0
        self._lives = ttl * round_ns
        self._heard_at: Nanos = 0
        self._doubts = 0
        self._asked = 0
        self._answered: set[NodeId] = set()
        self.state = ASKING if asks_time else FILLING

    def resize(self, count: int, ttl: int) -> None:
        """From now on a ball goes to so many peers, and an event lives so many rounds."""
        self._count = count
        self._lives = ttl * self._every // EVERY_ROUNDS

    @property
    def new(self) -> bool:
        """Whether it has never known the time."""
        return self.state is not READY and self._doubts == 0

    def ready(self) -> bool:
        """Whether it may broadcast."""
        if self.state is FILLING and len(self._sampler.known()) >= self._count:
            self._on(NewcomerEvent.FILL)
            self._env.cancel_timer(ASK)
            self.hear()
        if self._env.now - self._heard_at > self._lives:
            self.doubt()
        return self.state is READY

    def doubt(self) -> None:
        """Ask for the time again, before the next event: what this peer knows of it may be too old."""
        if self.state is READY and self._asks_time:
            self._on(NewcomerEvent.DOUBT)
            self._doubts += 1
            self._tries = 1
            self.ask()

    def hear(self) -> None:
        """A peer was heard, so this one is not cut off."""
        self._heard_at = self._env.now

    def ask(self) -> None:
        """Ask, or wait, and again after a while; at last do without."""
        if self.ready():
            return
        if self._tries == 0:
            self._on(NewcomerEvent.GIVE_UP)
            self.hear()  # nobody is there; do not ask before every event
            return
        self._tries -= 1
        if self.state is ASKING:
            self._ask_peers()
        self._env.set_timer(ASK, self._every)

    def answer(self, source: NodeId) -> None:
        """A peer told the time; it counts once, however often the network says it."""
        if self.state is ASKING:
            self._answered.add(source)
            if len(self._answered) * 2 >= self._asked:
                self._on(NewcomerEvent.LEARN)

    def _ask_peers(self) -> None:
        peers = self._sampler.sample(BEFORE_ROUNDS + self._tries + self._doubts, self._count)
        self._asked, self._answered = len(peers), set()
        if peers:
            self._env.multicast(peers, Hello())
        elif self._count == 0:
            self._on(NewcomerEvent.LEARN)

    def _on(self, event: NewcomerEvent) -> None:
        self.state = NEWCOMER_LIFE.after(self.state, event)
