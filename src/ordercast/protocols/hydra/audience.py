"""Who hears of configurations, and how many sequencers are wanted: both change when sequencers come later."""

from collections.abc import Mapping

from ordercast.core import NodeId
from ordercast.protocols.hydra.limits import later_sequencers
from ordercast.protocols.hydra.options import HydraOptions


class Audience:
    """The nodes that the configuration service announces to."""

    def __init__(
        self, founders: tuple[NodeId, ...], service: tuple[NodeId, ...], options: HydraOptions
    ) -> None:
        """`founders` are those of the first plan."""
        self.nodes = self._founders = founders
        self._service = service
        self._wanted = options.sequencers + options.spares
        self._fixed = options.target
        self._later = 0

    def know(self, roles: Mapping[NodeId, str]) -> None:
        """Take in sequencers that came later, and leave out who was removed."""
        later = later_sequencers(roles, self._service)
        self.nodes = (*(node for node in self._founders if node in roles), *later)
        self._later = len(later)

    @property
    def target(self) -> int:
        """The number of sequencers that are wanted: as the options say, or all that there are."""
        return self._fixed or self._wanted + self._later
