"""One seed, one trace: in any process, under any order of hashing."""

import json
import os
import subprocess
import sys

import pytest

from ordercast.catalogue import protocol_names

SEEDS = 25
SCRIPT = """
import json, sys
from ordercast.catalogue import protocol_names
from ordercast.sim.run import simulate
from ordercast.scenario.swarm import swarm_scenario
print(json.dumps({
    name: [simulate(swarm_scenario(name, seed)).description.trace_hash for seed in range(int(sys.argv[1]))]
    for name in protocol_names()
}))
"""


@pytest.fixture(scope="module")
def hashes() -> list[dict[str, list[str]]]:
    """The trace hashes of every protocol and seed, from two processes at once."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", SCRIPT, str(SEEDS)],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            stdout=subprocess.PIPE,
            text=True,
        )
        for hash_seed in ("1", "271828")
    ]
    found = [json.loads(process.communicate()[0]) for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    return found


@pytest.mark.parametrize("protocol", protocol_names())
def test_a_seed_gives_one_trace_under_any_hash_seed(
    protocol: str, hashes: list[dict[str, list[str]]]
) -> None:
    assert hashes[0][protocol] == hashes[1][protocol]


@pytest.mark.parametrize("protocol", protocol_names())
def test_every_seed_gives_another_trace(protocol: str, hashes: list[dict[str, list[str]]]) -> None:
    assert len(set(hashes[0][protocol])) == SEEDS
