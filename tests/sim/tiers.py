"""Three tiers in the simulator: clients call a shop, and the shop asks a stock."""

import msgspec

from ordercast.replication.llft.receiver import GroupReceiver
from ordercast.replication.llft.replica import Replica
from ordercast.scenario.spec import Scenario
from ordercast.scenario.swarm import swarm_scenario
from ordercast.services.shop import ITEMS, PIECES, Shop, Stock
from ordercast.sim.build import build_world
from ordercast.sim.run import Run, drive
from ordercast.sim.world import World
from ordercast.trace import Kind

SERVICES = {2: "shop, stock", 3: "shop, stock, counter"}


def tiers_scenario(seed: int) -> Scenario | None:
    """A scenario of the swarm with a shop and a stock; None if its groups do not suit."""
    drawn = swarm_scenario("llft", seed)
    if drawn.groups not in SERVICES:
        return None
    return msgspec.structs.replace(drawn, service=SERVICES[drawn.groups])


def run_tiers(scenario: Scenario) -> tuple[Run, list[str]]:
    """Run a scenario; what is wrong from end to end."""
    world = build_world(scenario, scenario.plan())
    run = drive(scenario, world)
    return run, _wrong(run, world) if run.description.complete else []


def _wrong(run: Run, world: World) -> list[str]:
    """At the end, what the stock gave away is what the shop has sold. If a branch was discarded, nobody knows
    what the shop had sold on it."""
    if any(event.kind is Kind.UNDONE for event in run.events()):
        return []
    found: list[str] = []
    shop, stock = (_primary(world, group) for group in (0, 1))
    if shop is None or stock is None:
        return ["a group has no primary"]
    asks = shop.performer.executor.asks
    if asks is not None and (asks.waiting or asks.calls):
        found.append(f"the shop waits for {asks.waiting}")
    sold, pieces = _service(shop), _service(stock)
    assert isinstance(sold, Shop) and isinstance(pieces, Stock)
    found += [
        f"{item}: {pieces.pieces[item]} left, {sold.sold[item]} sold"
        for item in ITEMS
        if pieces.pieces[item] + sold.sold[item] != PIECES
    ]
    return found


def _primary(world: World, group: int) -> Replica | None:
    processes = [world.envs[node].process for node in world.plan.groups[group] if world.envs[node].host.up]
    replicas = [one.replica for one in processes if isinstance(one, GroupReceiver)]
    leading = [one for one in replicas if one is not None and one.leads]
    return max(leading, key=lambda one: one.view, default=None)


def _service(replica: Replica) -> object:
    machine = replica.performer.executor._machine
    return machine._service  # type: ignore[union-attr]
