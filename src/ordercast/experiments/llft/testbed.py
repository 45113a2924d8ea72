"""The testbed of LLFT's evaluation (section VI) as a world.

Hosts with one CPU for the process at one switch, every client on a host of its own, so that the CPUs of
clients are never the limit. *Plain TCP* is one server without replicas on the same hosts and cables.

Choices that matter, made before anything was measured:

- **A multicast is one send, and the switch copies it.** The paper sends to groups by UDP multicast. So its
  sender is charged one packet of CPU and one passage of its own cable, and each receiver a packet. Figure
  14 also has the other case, one send for each copy.
- **A message of LLFT fits one frame.** The paper fragments large messages in user space. Headers have up to
  170 bytes before the frame is full; ordering information that needs more makes a second frame.
- **Timeouts are the defaults** of the protocol: a heartbeat every 5 ms, and 30 ms of silence before the
  first backup suspects the primary. The paper says that its parameters give about 30 ms.
- Executing an operation costs nothing, for both.
"""

from random import Random
from typing import Any

from ordercast.core import MILLISECOND, SECOND
from ordercast.experiments.hydra.bench import Counted, count
from ordercast.experiments.llft.calibration import Costs
from ordercast.experiments.llft.ethernet import TCP_BYTES, UDP_BYTES, Ethernet
from ordercast.scenario.cpu import Cpu
from ordercast.scenario.spec import Scenario, WorkloadSpec
from ordercast.sim.collector import collector_paused
from ordercast.sim.network import Network
from ordercast.sim.scheduler import Scheduler
from ordercast.sim.world import World

LLFT, TCP = "llft", "unreplicated"
NAMES = {LLFT: "LLFT", TCP: "plain TCP"}
TAKE, GIVE = (f"ordercast.experiments.llft.services:{name}" for name in ("Take", "Give"))
ECHO = "echo"
FRAGMENT_BYTES = 1_300
START_NS = 10 * MILLISECOND
COUNTED_MAX = 2 * SECOND
MESSAGES_MAX = 100_000_000
"""For clients that go on until the run is cut off."""


def scenario_of(
    system: str, *, replicas: int, clients: int, size: int, service: str = ECHO, seed: int
) -> Scenario:
    """Closed-loop clients, each with one call under way."""
    options: dict[str, Any] = {"fragment_bytes": FRAGMENT_BYTES} if system == LLFT else {}
    return Scenario(
        protocol=system,
        seed=seed,
        receivers=replicas if system == LLFT else 1,
        senders=clients,
        options=options,
        service=service,
        workload=WorkloadSpec(kind="closed", messages=MESSAGES_MAX, bytes=size, reads=0.0),
    )


@collector_paused()
def started(scenario: Scenario, costs: Costs, *, copies: bool = False, packets: bool = False) -> World:
    """A world in which all processes run. `copies`: a multicast costs one send for each copy."""
    transport = UDP_BYTES if scenario.protocol == LLFT else TCP_BYTES

    def network(scheduler: Scheduler, rng: Random) -> Network:
        return Ethernet(scheduler, rng, costs.link_us, transport)

    cpu = Cpu(receive_ns=costs.packet_ns, send_ns=costs.packet_ns, copies=copies)
    world = World(scenario.plan(), scenario.seed, network, cpu=cpu, record_packets=packets)
    world.run(START_NS)
    return world


def counted(scenario: Scenario, costs: Costs, calls: int, *, copies: bool = False) -> Counted:
    """The latencies and the rate of so many calls, or more if there are many clients."""
    world = started(scenario, costs, copies=copies)
    return count(scenario, world, clients=scenario.senders, messages=calls, most=COUNTED_MAX)
