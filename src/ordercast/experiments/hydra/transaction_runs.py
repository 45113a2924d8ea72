"""Runs of transactions over 15 shards of three replicas on Hydra's testbed (NSDI 2023, section 7.3).

HydraTxn with two switch sequencers, Eris with one, Granola, and Lock-Store, for closed-loop clients. The two
free numbers are in `transaction_calibration.py`. Choices, which no ratio was fitted by:

- **Packets and executions are what costs.** The four systems share one code base in the paper. What HydraTxn
  would have if it alone paid for Hydra's order, as the microbenchmarks charge it, is in the notes.
- **No batching**: one call is one packet, and one slot of a log. Replicas keep everything in memory.
- **A client that has no answer after 1 ms calls again**, in all systems, and a shard of Granola that lacks a
  vote asks for it; the latter was 10 ms at first, and matters to no claim. A client of Lock-Store or Granola
  that finds a key locked waits at most for as long as its attempt took, or for 10 us, some three round trips.
- **Replicas ask for a missing packet at once**, and a leader gives it up after 20 us, as in `smr.py`.
- **There are 100,000 keys**; the paper does not say how many it had. With the 24 keys of the built-in
  workload, which were tried first, some of the 15 shards had none.
"""

from functools import cache
from random import Random
from typing import Any

import msgspec

from ordercast.core import MICROSECOND, MILLISECOND, SECOND, MessageId, Nanos
from ordercast.core.general import Conclude, Prepare, read_general
from ordercast.experiments.experiment import CaseValues
from ordercast.experiments.hydra.bench import Counted, count, ready_world, sequencer_nodes
from ordercast.experiments.hydra.calibration import PACKETS_OF_ORDER, Hardware
from ordercast.experiments.hydra.losing import EVERYWHERE, FROM_SEQUENCERS, lose_from
from ordercast.experiments.hydra.saturation import doubled, summary
from ordercast.experiments.hydra.testbed import SWITCH_CPU, hydra_options, microbenchmark, star
from ordercast.experiments.hydra.transaction_calibration import EXECUTION, LIMIT, execution_ns, limit_gbps
from ordercast.pipeline.cases import Value
from ordercast.scenario.spec import Scenario
from ordercast.services import Operations, ServiceWorkload, sharded
from ordercast.services.keys import DrawnKeys
from ordercast.services.workload import Drawn
from ordercast.sim.workload import ClosedLoop
from ordercast.sim.world import World
from ordercast.trace import Kind

HYDRA_TXN, ERIS, GRANOLA, LOCK_STORE = "hydra_txn", "eris", "granola", "lock_store"
SYSTEMS = {HYDRA_TXN: "HydraTxn", ERIS: "Eris", GRANOLA: "Granola", LOCK_STORE: "Lock-Store"}
SEQUENCED = (HYDRA_TXN, ERIS)
SHARDS = 15
KEYS = 100_000
RETRY_NS: Nanos = 1 * MILLISECOND
BACK_OFF_NS: Nanos = 10 * MICROSECOND
COUNTED_MAX: Nanos = 20 * SECOND
"""One client of a system that repeats slowly takes long under loss."""
GAPS = {"ask_ns": 0, "gap_ns": 20 * MICROSECOND}
PART = 600
"""Messages counted for points beside the claims."""
FUNCTION = f"{__name__}:transact"


class Mix(msgspec.Struct, frozen=True, kw_only=True):
    """What transactions clients draw: single keys that are read or written, 1:1, or more."""

    two: float = 0.0
    """The share of those that read and change two keys."""
    general: float = 0.0
    """The share of those with two keys that are general."""
    skew: float = 0.0
    """Of the keys (Zipf)."""
    retwis: bool = False
    """Retwis, instead of all these."""

    def parameters(self) -> dict[str, Value]:
        """What a case of it is called with."""
        return {field: getattr(self, field) for field in self.__struct_fields__}

    def workload(self) -> ServiceWorkload:
        """How they are drawn."""
        if self.retwis:
            return sharded.retwis(KEYS)
        # A key that is moved from has a number, and others a text.
        one, pair = (
            sharded.ycsb(_keys("single", self.skew)),
            sharded.two_keys(_keys("pair", self.skew), self.general),
        )

        def generate(rng: Random, number: int, reads: bool, size: int) -> Drawn:
            drawn = pair if rng.random() < self.two else one
            return drawn.generate(rng, number, reads, size)

        return pair._replace(generate=generate)


@cache
def _keys(name: str, skew: float) -> DrawnKeys:
    return DrawnKeys(KEYS, skew, name)


class Ended:
    """Transactions that have ended. A general one counts when it is concluded, from its beginning on."""

    def __init__(self) -> None:
        self._begun: dict[MessageId, Nanos] = {}

    def __call__(self, world: World, first: int) -> list[Nanos]:
        """The latencies of those that ended among the rows from the given one on."""
        return [
            latency
            for time, _, _, kind, message, _, _, submitted, *_ in world.rows[first:]
            if kind is Kind.REPLY and isinstance(message, int)
            if isinstance(time, int) and isinstance(submitted, int)
            if (latency := self._latency(world, message, time, submitted)) is not None
        ]

    def _latency(self, world: World, message: MessageId, time: Nanos, submitted: Nanos) -> Nanos | None:
        match read_general(world.calls.operations[message]):
            case Prepare():
                self._begun[message] = submitted
                return None
            case Conclude(transaction=transaction):
                return time - self._begun[transaction]
        return time - submitted


def transact(
    *,
    system: str,
    packet_ns: int,
    link_us: float,
    seed: int,
    messages: int,
    execution: float = EXECUTION,
    limit: float = LIMIT,
    order: bool = False,
    loss: float = 0.0,
    where: str = EVERYWHERE,
    two: float = 0.0,
    general: float = 0.0,
    skew: float = 0.0,
    retwis: bool = False,
) -> CaseValues:
    """The maximum throughput of a system, its latency with a client for each shard, and all loads."""
    hardware, mix = Hardware(packet_ns, link_us), Mix(two=two, general=general, skew=skew, retwis=retwis)
    execute_ns = execution_ns(hardware, execution)
    if order:
        execute_ns += round(PACKETS_OF_ORDER["hydra"] * packet_ns)

    def measure(clients: int) -> Counted:
        scenario = shards_run(system, clients, seed, hardware, execute_ns=execute_ns, limit=limit)
        if where == EVERYWHERE:
            scenario = losing(scenario, loss)
        world = ready_world(scenario)
        if where == FROM_SEQUENCERS:
            lose_from(world, {world.envs[node].host.id for node in sequencer_nodes(world)}, loss)
        return count(
            scenario,
            world,
            clients=clients,
            messages=messages,
            most=COUNTED_MAX,
            workload=ClosedLoop(world, scenario.workload, drawn_by(scenario, mix)),
            completed=Ended(),
        )

    return summary(list(doubled(SHARDS, measure)))


def shards_run(
    system: str, clients: int, seed: int, hardware: Hardware, *, execute_ns: Nanos, limit: float
) -> Scenario:
    """A run of a system with so many clients."""
    scenario = microbenchmark(
        system, clients=clients, seed=seed, groups=SHARDS, options=options_of(system), hardware=hardware
    )
    sequenced = system in SEQUENCED
    latency = star(hardware, limit_gbps(hardware, limit) if sequenced else None)
    return msgspec.structs.replace(
        scenario,
        service="ycsb",
        cpu=msgspec.structs.replace(scenario.cpu, execute_ns=execute_ns),
        role_cpu={"switch": SWITCH_CPU} if sequenced else {},
        network=msgspec.structs.replace(scenario.network, latency=latency),
    )


def losing(scenario: Scenario, loss: float) -> Scenario:
    """The same, with this share of all packets lost."""
    return msgspec.structs.replace(scenario, network=msgspec.structs.replace(scenario.network, loss=loss))


def drawn_by(scenario: Scenario, mix: Mix) -> Operations:
    """The transactions of clients; reads and writes of single keys are 1:1."""
    return Operations(mix.workload(), 0.5, scenario.workload.bytes, SHARDS)


def options_of(system: str) -> dict[str, Any]:
    """The options of a system."""
    calls = {"retry_ns": RETRY_NS, "window": 65_536}
    match system:
        case "hydra_txn":
            hydra = hydra_options(flush="solicited", flush_ns=0)
            hydra.pop("repair")
            return {"calls": calls, "hydra": hydra, "replicas": GAPS}
        case "eris":
            return {"calls": calls, "kind": "switch", "spares": 0, "replicas": GAPS}
        case _:
            log = {"batch": 1, "durable": False, "back_off_ns": BACK_OFF_NS}
            return {"calls": calls} | log | ({"vote_ns": RETRY_NS} if system == GRANOLA else {})
