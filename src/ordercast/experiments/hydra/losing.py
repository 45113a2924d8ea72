"""Where packets are lost on Hydra's testbed: on all ways, or on those from sequencers to replicas alone.

The paper's drop notifications come from the second kind (appendix A.2).
"""

from random import Random

from ordercast.core import HostId, Nanos
from ordercast.sim.network import Packet
from ordercast.sim.world import World

EVERYWHERE, FROM_SEQUENCERS = "all ways", "from sequencers"
LOSSES = (0.0, 0.00001, 0.0001, 0.001, 0.01)
"""The shares of lost packets of Figures 11 and 12."""


def lose_from(world: World, hosts: set[HostId], share: float) -> None:
    """Lose this share of the packets that leave some hosts."""
    network, rng = world.network, Random(f"{world.seed}/lost")
    carry = network.transmit

    def transmit(departure: Nanos, packet: Packet) -> bool:
        if packet.link[0] in hosts and rng.random() < share:
            network.lost += 1
            return False
        return carry(departure, packet)

    network.transmit = transmit  # type: ignore[method-assign]
