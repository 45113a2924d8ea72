"""The command: see the package."""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec

from benchmarks.hostile.attacker import Sent
from benchmarks.hostile.phases import Assault
from benchmarks.hostile.verdict import Verdict, conclude, table
from ordercast.cli.judged_runs import MANY_EVENTS
from ordercast.core import HostId
from ordercast.lab.bench.run import plan_of, run_bench
from ordercast.lab.bench.spec import BenchSpec
from ordercast.trace import find_runs

OFFERED = 2_000.0
"""Messages a second that users send, whatever happens."""
START_S = 8.0
"""How long the load lasts beside the phases: the attacker must start."""


def attack(
    datagrams: int, lies: int, rate: float, *, turn_s: float = 5.0, offered: float = OFFERED, clients: int = 0
) -> Verdict:
    """Attack a cluster with so many datagrams and lies, under an offered rate of messages or with clients."""
    cycles = max(1, round(datagrams / rate / turn_s))
    options: dict[str, object] = {"sequencers": 2, "spares": 1}
    plan = plan_of(BenchSpec(options=options))
    spare: HostId = max(node.host for node in plan.nodes if node.role == "sequencer")
    assault = Assault(spare, rate, lies / datagrams, cycles, datagrams / rate / cycles)
    seconds = assault.seconds + START_S
    spec = BenchSpec(
        load="clients" if clients else "rate",
        clients=max(1, clients),
        rate=offered,
        seconds=seconds,
        options=options,
        trace=True,
    )
    with tempfile.TemporaryDirectory(prefix="ordercast-hostile-") as name:
        folder = Path(name) / "bench"
        hosts = len({node.host for node in plan.nodes} - {spare})
        result = run_bench(spec, folder, assault.watch, absent={spare})
        return conclude(
            Sent(datagrams, lies), result, assault, folder, hosts, check_trace(Path(result.trace))
        )


def check_trace(trace: Path) -> str:
    """What `ordercast check` complains of."""
    words = [sys.executable, "-m", "ordercast.cli", "check", str(trace)]
    if sum(run.rows for run in find_runs(trace)) > MANY_EVENTS:  # more than memory holds: judge it in parts
        words += ["--master", "local[*]"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else f"ordercast check: {done.stdout}{done.stderr}"


def main() -> int:
    """Attack as the command line says."""
    parser = argparse.ArgumentParser(description="Attack a Hydra cluster on this machine.")
    parser.add_argument("--datagrams", type=int, default=1_000_000)
    parser.add_argument("--lies", type=int, default=100_000, help="messages behind valid seals")
    parser.add_argument(
        "--rate", type=float, default=10_000.0, help="datagrams a second, to all hosts together"
    )
    parser.add_argument("--turn", type=float, default=5.0, help="seconds of a phase, about")
    parser.add_argument("--offered", type=float, default=OFFERED, help="messages a second of users")
    parser.add_argument("--clients", type=int, default=0, help="closed loop with so many clients instead")
    parser.add_argument("--json", type=Path, help="write the result to this file")
    chosen = parser.parse_args()
    found = attack(
        chosen.datagrams,
        chosen.lies,
        chosen.rate,
        turn_s=chosen.turn,
        offered=chosen.offered,
        clients=chosen.clients,
    )
    print(table(found))
    if chosen.json:
        chosen.json.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=2))
    return 1 if found.faults else 0


if __name__ == "__main__":
    sys.exit(main())
