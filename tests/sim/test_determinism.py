"""One seed, one trace: in any process, under any order of hashing."""

import json
import os
import subprocess
import sys

from ordercast.catalogue import protocol_names

SEEDS = 2
SCRIPT = """
import json, sys
from ordercast.sim.run import simulate
from ordercast.scenario.swarm import swarm_scenario
seeds, *names = sys.argv[1:]
def hashes(name):
    return [simulate(swarm_scenario(name, seed)).description.trace_hash for seed in range(int(seeds))]
print(json.dumps({name: hashes(name) for name in names}))
"""


def test_a_seed_gives_one_trace_under_any_hash_seed_and_every_seed_another() -> None:
    first, second = hashes()
    assert list(first) == protocol_names()
    assert first == second
    assert all(len(set(found)) == SEEDS for found in first.values())


def hashes() -> list[dict[str, list[str]]]:
    """The trace hashes of every seed of each protocol, from two processes at once."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", SCRIPT, str(SEEDS), *protocol_names()],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            stdout=subprocess.PIPE,
            text=True,
        )
        for hash_seed in ("1", "271828")
    ]
    found: list[dict[str, list[str]]] = [json.loads(process.communicate()[0]) for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    return found
