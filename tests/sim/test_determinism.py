"""One seed, one trace: in any process, under any order of hashing."""

import json
import os
import subprocess
import sys

import pytest

from ordercast.catalogue import protocol_names

SEEDS = 3
SCRIPT = """
import json, sys
from ordercast.sim.run import simulate
from ordercast.scenario.swarm import swarm_scenario
name, seeds = sys.argv[1], int(sys.argv[2])
print(json.dumps([simulate(swarm_scenario(name, seed)).description.trace_hash for seed in range(seeds)]))
"""


@pytest.mark.parametrize("protocol", protocol_names())
def test_a_seed_gives_one_trace_under_any_hash_seed_and_every_seed_another(protocol: str) -> None:
    first, second = hashes(protocol)
    assert first == second
    assert len(set(first)) == SEEDS


def hashes(protocol: str) -> list[list[str]]:
    """The trace hashes of every seed, from two processes at once."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", SCRIPT, protocol, str(SEEDS)],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            stdout=subprocess.PIPE,
            text=True,
        )
        for hash_seed in ("1", "271828")
    ]
    found: list[list[str]] = [json.loads(process.communicate()[0]) for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    return found
