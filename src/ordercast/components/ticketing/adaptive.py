"""A member that changes its mode by itself, by what it believes about rates and delays (section 6.2)."""

from collections.abc import Mapping

from ordercast.components.ticketing.member import TicketMember
from ordercast.components.ticketing.modes import Mode
from ordercast.components.ticketing.options import TicketOptions
from ordercast.components.ticketing.participant import MakeViews, Setting
from ordercast.components.ticketing.switching import Wish, is_nearer, wish
from ordercast.core import MILLISECOND, Env, LocalError, Nanos, NodeId


class AdaptiveOptions(TicketOptions, frozen=True):
    """Options of members that adapt."""

    decide_ns: Nanos = 50 * MILLISECOND
    """Time between two looks at the estimates."""
    threshold: float = 0.2
    """A member changes its mode only if the time between its messages differs from the delay to the closest
    active member by more than this share of the delay."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.decide_ns < 1:
            raise LocalError(f"decide_ns must be positive, got {self.decide_ns}")
        if not 0 <= self.threshold < 1:
            raise LocalError(f"threshold must be from 0 to below 1, got {self.threshold}")


class AdaptiveMember(TicketMember):
    """A member that decides from time to time."""

    def __init__(self, env: Env, setting: Setting, options: AdaptiveOptions, make_views: MakeViews) -> None:
        super().__init__(env, setting, make_views)
        self._options = options
        self._began_ns = env.now

    def on_start(self, saved: Mapping[str, bytes]) -> None:
        """Begin to decide."""
        super().on_start(saved)
        self.env.set_timer("decide", self._options.decide_ns)

    def on_own_timer(self, name: str) -> None:
        """Time to decide, or something else."""
        if name == "decide":
            self._decide()
            self.env.set_timer("decide", self._options.decide_ns)
        else:
            super().on_own_timer(name)

    def _decide(self) -> None:
        match self.wish():
            case Wish.ACTIVE:
                self.go_active()
            case Wish.PASSIVE:
                self.go_passive(self._near_enough())
            case Wish.NEARER:
                self.change_sequencer()

    def wish(self) -> Wish:
        """What this member should do now, by what it believes."""
        others = [node for node in self.ordering.configuration.actives if node != self.env.me]
        if self.mode not in (Mode.ACTIVE, Mode.PASSIVE) or not others:
            return Wish.STAY
        closest = self.estimates.delay(self.closest(others))
        wanted = wish(self.mode is Mode.ACTIVE, self._interval(), closest, self._options.threshold)
        if wanted is Wish.STAY and self.mode is Mode.PASSIVE and self.sequencer is not None:
            current = self.estimates.delay(self.sequencer.node)
            return Wish.NEARER if is_nearer(closest, current, self._options.threshold) else Wish.STAY
        return wanted

    def _near_enough(self) -> list[NodeId]:
        """The active members that are close enough: with one of them left, this one would stay passive.

        Neighbours that decide at the same time would otherwise all become passive, each relying on another
        one, find themselves far from whoever is left, and all become active again. A member whose delay is
        not known yet counts as close enough.
        """
        interval, threshold = self._interval(), self._options.threshold
        delays = ((node, self.estimates.delay(node)) for node in self.ordering.configuration.actives)
        return [node for node, delay in delays if wish(False, interval, delay, threshold) is not Wish.ACTIVE]

    def own_rate(self) -> str:
        """A member that became passive by its silence alone says so."""
        unknown = "too few messages to know a rate" if self.mode is Mode.PASSIVE else ""
        return super().own_rate() or unknown

    def _interval(self) -> Nanos | None:
        """The time between two own messages.

        An active member that has sent too few to know it counts its silence, so that one that never sends
        becomes passive; but it gives its messages the time of k decisions. Nothing follows for a passive one:
        its first messages would look like a high rate.
        """
        me, now = self.env.me, self.env.now
        known = self.estimates.own_interval(me, now)
        if known is not None or self.mode is not Mode.ACTIVE:
            return known
        silence = self.estimates.own_silence(me, self._began_ns, now)
        return silence if silence >= self._options.decide_ns else None
