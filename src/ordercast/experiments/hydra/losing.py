"""Where packets are lost on Hydra's testbed: on all ways, or on those from sequencers to replicas alone; and
what throughput is left.

The paper's drop notifications come from the second kind (appendix A.2).
"""

from collections.abc import Mapping
from random import Random
from statistics import median

from ordercast.core import HostId, Nanos
from ordercast.experiments.experiment import Results
from ordercast.experiments.hydra.results import peaks
from ordercast.report.figures import Axis, Curve, Figure, Point
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


def kept_under_loss(results: Results, loss: float) -> dict[int, float]:
    """For each seed, the maximum throughput under loss as a share of that without."""
    with_loss, without = peaks(results.where(loss=loss)), peaks(results.where(loss=0.0))
    return {seed: with_loss[seed] / without[seed] for seed in without}


def _loss_curve(label: str, results: Results) -> Curve:
    """The same over the share of packets that are lost."""
    losses = sorted({float(result.case.parameters["loss"]) for result in results.all})
    kept = ((loss, median(kept_under_loss(results, loss).values())) for loss in losses if loss)
    return Curve(label=label, points=tuple(Point(100 * loss, share) for loss, share in kept))


def loss_figure(name: str, title: str, caption: str, systems: Mapping[str, str], results: Results) -> Figure:
    """The shares that systems keep, wherever packets are lost."""
    return Figure(
        id=name,
        title=title,
        caption=caption,
        x=Axis(label="lost packets (%)", scale="log"),
        y=Axis(label="max throughput / its own without loss", low=0.0),
        curves=tuple(
            _loss_curve(f"{label}, {where}", found)
            for where in (EVERYWHERE, FROM_SEQUENCERS)
            for system, label in systems.items()
            if (found := results.where(system=system, where=where)).all
        ),
    )
