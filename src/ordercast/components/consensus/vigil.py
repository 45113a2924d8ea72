"""How long a replica has heard of no leader.

It counts the time of its own timer and does not read the clock. A clock that was set back stands still, for
an hour perhaps, and a replica that measured silence with it would neither stand nor support another.
"""

from ordercast.components.consensus.options import BACKOFF_MAX, ConsensusOptions
from ordercast.core import Env, Nanos


class Vigil:
    """Silence and patience of a replica that does not lead."""

    __slots__ = ("_env", "_options", "_patience", "_silence", "_step", "elections", "heard", "since")

    def __init__(self, env: Env, options: ConsensusOptions) -> None:
        self._env = env
        self._options = options
        self.elections = 0
        """Elections seen since there was a leader."""
        self.heard = False
        """A sign of a leader came since the timer last went off."""
        self.since: Nanos = 0
        self._silence: Nanos = 0
        self._patience: Nanos = 0
        self._step: Nanos = 0

    def begin(self) -> None:
        """Wait a random time, and longer the more elections in a row have failed.

        Phase 1 takes as long as it takes to report what was accepted, chunk by chunk; others who become
        impatient meanwhile would start all over.
        """
        options = self._options
        patience = self._env.rng.randint(options.election_ns_min, options.election_ns_max)
        self._patience = patience << min(self.elections, BACKOFF_MAX)
        self._silence = 0
        self.heard = False
        self.since = self._env.now

    def next_step(self, period: Nanos) -> Nanos:
        """When to look again: after a period, or sooner if patience ends sooner."""
        self._step = min(period, self._patience - self._silence)
        return self._step

    def look(self) -> bool:
        """The step is over: whether patience has come to its end."""
        self._silence = 0 if self.heard else self._silence + self._step
        self.heard = False
        return self._silence >= self._patience

    def is_silent(self) -> bool:
        """Whether the leader has been silent for so long that somebody may stand against it."""
        return not self.heard and self._silence >= self._options.election_ns_min
