"""What a peer that has just started waits for before it broadcasts: some peers to tell, and the logical time.

A view that is being filled may hold nobody for a while, and a ball thrown to nobody is an event that nobody
else will ever hear of. A logical clock is worth something only if it is not far behind: the events of a peer
that has just started would come before what all others have delivered, and be lost. So a newcomer waits until
it knows as many peers as a ball goes to, and asks them for the time until half of them have answered; but no
longer than an event lives. The paper takes both for given, and does not say how a joining process comes to
them.
"""

from ordercast.components.sampling import Sampler
from ordercast.core import Env, Nanos, NodeId
from ordercast.protocols.epto.messages import Hello

ASK = "ask"
EVERY_ROUNDS = 4
BEFORE_ROUNDS = 1 << 40
"""Names the choices of whom to ask, each time others; no round has such a number."""


class Newcomer:
    """Waits until it knows enough, then never again."""

    def __init__(
        self, env: Env, sampler: Sampler, count: int, ttl: int, round_ns: Nanos, *, asks_time: bool
    ) -> None:
        self._env = env
        self._sampler = sampler
        self._count = count
        self._every = EVERY_ROUNDS * round_ns
        self._tries = 1 + ttl // EVERY_ROUNDS
        self._asked = 0
        self._answered: set[NodeId] = set()
        self._time_known = not asks_time
        self.done = False
        """Whether it waits no more."""

    def ready(self) -> bool:
        """Whether it may broadcast."""
        if not self.done and self._time_known and len(self._sampler.known()) >= self._count:
            self.done = True
            self._env.cancel_timer(ASK)
        return self.done

    def ask(self) -> None:
        """Ask, or wait, and again after a while; at last do without."""
        if self.ready():
            return
        if self._tries == 0:
            self.done = True
            return
        self._tries -= 1
        if not self._time_known:
            peers = self._sampler.sample(BEFORE_ROUNDS + self._tries, self._count)
            self._asked, self._answered = len(peers), set()
            if peers:
                self._env.multicast(peers, Hello())
            else:
                self._time_known = self._count == 0
        self._env.set_timer(ASK, self._every)

    def answer(self, source: NodeId) -> None:
        """A peer told the time; it counts once, however often the network says it."""
        self._answered.add(source)
        if len(self._answered) * 2 >= self._asked:
            self._time_known = True
