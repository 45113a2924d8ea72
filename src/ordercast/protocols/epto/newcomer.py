"""How a peer that has just started learns the logical time.

A logical clock is worth something only if it is not far behind: the events of a peer that has just started
would come before what all others have delivered, and be lost. So it first asks some peers, and broadcasts
nothing until half of them have answered, or nobody has for as long as an event lives. The paper does not say
how a joining process gets to know the time.
"""

from ordercast.core import Env, Nanos
from ordercast.protocols.epto.messages import Hello
from ordercast.sampling import Sampler

ASK = "ask"
EVERY_ROUNDS = 4
BEFORE_ROUNDS = 1 << 40
"""Names the choices of whom to ask, each time others; no round has such a number."""


class Newcomer:
    """Asks until it knows enough."""

    __slots__ = ("_answers", "_asked", "_count", "_env", "_every", "_sampler", "_tries", "ready")

    def __init__(self, env: Env, sampler: Sampler, count: int, ttl: int, round_ns: Nanos) -> None:
        self._env = env
        self._sampler = sampler
        self._count = count
        self._every = EVERY_ROUNDS * round_ns
        self._tries = 1 + ttl // EVERY_ROUNDS
        self._asked = 0
        self._answers = 0
        self.ready = False
        """Whether it may broadcast."""

    def ask(self) -> None:
        """Ask, and again after a while."""
        peers = self._sampler.sample(BEFORE_ROUNDS + self._tries, self._count)
        if not peers or self._tries == 0:
            self.ready = True
            return
        self._tries -= 1
        self._asked, self._answers = len(peers), 0
        self._env.multicast(peers, Hello())
        self._env.set_timer(ASK, self._every)

    def answer(self) -> None:
        """A peer told the time."""
        self._answers += 1
        if not self.ready and self._answers * 2 >= self._asked:
            self.ready = True
            self._env.cancel_timer(ASK)
