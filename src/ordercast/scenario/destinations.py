"""Destinations: the groups that messages go to."""

from collections.abc import Sequence
from random import Random

from ordercast.core import Groups, LocalError, Plan
from ordercast.scenario.spec import WorkloadSpec
from ordercast.toml_file import about


class Destinations:
    """Chooses the groups of a message: their number by a distribution, and the groups uniformly."""

    def __init__(self, groups: Sequence[int], spread: Sequence[float] = (1.0,)) -> None:
        if not spread or any(share < 0 for share in spread) or sum(spread) <= 0:
            raise LocalError(
                f"spread must list the shares of messages to 1, 2, ... groups, not {list(spread)}"
            )
        if len(spread) > len(groups):
            raise LocalError(f"spread has {len(spread)} entries, but there are {len(groups)} groups")
        self._groups = list(groups)
        self._counts = range(1, len(spread) + 1)
        self._spread = list(spread)

    @classmethod
    def of(cls, spec: WorkloadSpec, plan: Plan) -> "Destinations":
        """The destinations of a workload, chosen from the groups of a plan."""
        with about("workload.spread"):
            if plan.groups_max < len(spec.spread) <= len(plan.groups):
                raise LocalError(
                    f"spread has {len(spec.spread)} entries, but {plan.protocol} sends a message to at most "
                    f"{plan.groups_max} of the groups"
                )
            return cls(sorted(plan.groups), spec.spread)

    def choose(self, rng: Random) -> Groups:
        """The groups of one message, ascending."""
        if len(self._spread) == 1:
            return (self._groups[int(rng.random() * len(self._groups))],)
        count = rng.choices(self._counts, self._spread)[0]
        return tuple(sorted(rng.sample(self._groups, count)))
