"""What peers out of step say of how many know an event (section 8.4), set against who does."""

import numpy as np
import pytest

from ordercast.core import NodeId
from ordercast.engines.epto.network import Latencies
from ordercast.engines.epto.setup import Setup
from ordercast.protocols.epto.parameters import lemma_parameters
from ordercast.protocols.epto.protocol import PACE
from ordercast.protocols.epto.stability import Stability
from tests.scale.reference import Event, World, name_of

PEERS, LOSS = 30, 0.05


class Asking(World):
    """After each of its rounds, a peer is asked how sure it is of what it knows of."""

    def __init__(self, setup: Setup, latencies: Latencies, ticks: int) -> None:
        super().__init__(setup, latencies, ticks)
        self.stability = Stability(PEERS, setup.fanout, setup.ttl, loss=LOSS, pace=PACE)
        self.said: list[tuple[int, Event, float]] = []

    def take_turn(self, process: NodeId) -> None:
        super().take_turn(process)
        for wait in self.peers[process].explain().waits:
            if wait.payload is not None and wait.stable is not None:
                self.said.append((self.now, name_of(wait.payload), wait.stable))


@pytest.mark.parametrize(
    "latencies", [[2], [12], [60], [120], [15, 15, 125, 125, 366]], ids=lambda ticks: f"{ticks[-1]} ticks"
)
def test_of_what_is_nearly_sure_nothing_is_unknown_anywhere(latencies: list[int]) -> None:
    """With the lemmas' parameters, from a sixtieth of a round to three rounds, and with losses."""
    chosen = lemma_parameters(PEERS, 1.25, loss=LOSS)
    setup = Setup(PEERS, chosen.fanout, chosen.ttl, "logical", rounds=8, loss=LOSS, seed=5)
    network = Latencies(np.empty((0, 0), np.int16), np.array(latencies, np.int32))
    world = Asking(setup, network, (setup.rounds + setup.ttl + 8) * setup.round_ticks)
    story = world.run()
    everywhere = {
        event: max(story.arrived[peer, event] for peer in range(PEERS) if peer != event[0])
        for _, event in story.events
    }
    sure = [(now, event) for now, event, stable in world.said if stable > 0.99]
    assert len({event for _, event in sure}) > 5
    assert [(now, event) for now, event in sure if everywhere[event] > now] == []
    assert any(stable < 0.5 for _, _, stable in world.said), "what was just heard of is not sure"
