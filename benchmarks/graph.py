"""How long it takes to build a sequencing graph, and to change one group of it, as both grow.

Groups whose sizes follow Zipf's law: the most popular has every node as a member, the least popular as many
as there are nodes for a group. A graph is built at once, in both orders; then one more group is added and
removed, and a subscription is made and ended, some hundred times each: medians, with the 90th percentiles.
The last group is one of median size.

    python -m benchmarks.graph [--largest NODES] [--json]
"""

import argparse
import json
import time
from collections.abc import Callable
from functools import partial
from random import Random
from statistics import median, quantiles

from ordercast.components.sequencing_graph import (
    SequencingGraph,
    add_group,
    build,
    by_group,
    by_hub,
    remove_group,
    subscribe,
    unsubscribe,
)
from ordercast.experiments.atoms.worlds import Memberships, zipf_groups

NODES_A_GROUP = 10
LARGEST = 10_000
SIZES = 4
TIMES = 60
NEW = 1_000_000


def seconds(action: Callable[[], object]) -> float:
    """How long an action takes."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def changes(graph: SequencingGraph, members: Memberships, nodes: int) -> dict[str, list[float]]:
    """How long each kind of change takes, in milliseconds, each time."""
    rng = Random(1)
    sizes = sorted(len(those) for those in members.values())
    size = sizes[len(sizes) // 2]
    times: dict[str, list[float]] = {"add": [], "subscribe": [], "unsubscribe": [], "remove": []}
    for number in range(TIMES):
        group = NEW + number
        some = rng.sample(range(nodes), size + 1)
        actions: dict[str, Callable[[], object]] = {
            "add": partial(add_group, graph, group, some[1:]),
            "subscribe": partial(subscribe, graph, some[0], group),
            "unsubscribe": partial(unsubscribe, graph, some[0], group),
            "remove": partial(remove_group, graph, group),
        }
        for name, action in actions.items():
            times[name].append(seconds(action) * 1e3)
    return times


def measure(nodes: int) -> dict[str, float]:
    """One size."""
    groups = nodes // NODES_A_GROUP
    members = zipf_groups(nodes, groups, seed=1)
    graphs: list[SequencingGraph] = []
    by_hub_s = seconds(lambda: graphs.append(build(members, by_hub)))
    by_group_s = seconds(lambda: build(members, by_group))
    row = {"nodes": nodes, "groups": groups, "atoms": len(graphs[0].atoms)}
    result = row | {"build_by_hub_s": round(by_hub_s, 3), "build_by_group_s": round(by_group_s, 3)}
    for name, times in changes(graphs[0], members, nodes).items():
        result[f"{name}_ms"] = round(median(times), 3)
        result[f"{name}_ms_p90"] = round(quantiles(times, n=10)[-1], 3)
    return result


def main() -> None:
    """Print a row for each size."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--largest", type=int, default=LARGEST, metavar="NODES")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    chosen = parser.parse_args()
    rows = [measure(chosen.largest >> shift) for shift in range(SIZES - 1, -1, -1)]
    if chosen.json:
        print(json.dumps({"rows": rows}, indent=2))
        return
    names = [name for name in rows[0] if not name.endswith("p90")]
    print("  ".join(f"{name:>16}" for name in names))
    for row in rows:
        print("  ".join(f"{row[name]:>16}" for name in names))


if __name__ == "__main__":
    main()
