"""The trace hashes of the first seeds of the swarm: code that is only moved leaves them as they are.

After a change of behaviour that is meant, `python -m tests.sim.trace_hashes` records them again, of all
protocols or of those that it is given.
"""

import json
import sys
from collections.abc import Collection
from pathlib import Path

from ordercast.catalogue import protocol_names
from ordercast.scenario.swarm import swarm_scenario
from ordercast.sim.run import simulate

SEEDS = 200
FILE = Path(__file__).with_suffix(".json")


def recorded() -> dict[str, list[str]]:
    """The hashes on record, by protocol and seed."""
    found: dict[str, list[str]] = json.loads(FILE.read_text())
    return found


def record(names: Collection[str]) -> None:
    """Run every seed of these protocols, and write its hash down."""
    hashes = {
        name: [simulate(swarm_scenario(name, seed)).description.trace_hash for seed in range(SEEDS)]
        for name in names
    }
    FILE.write_text(json.dumps(recorded() | hashes, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    record(sys.argv[1:] or protocol_names())
