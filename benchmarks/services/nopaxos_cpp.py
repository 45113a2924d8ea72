"""NOPaxos by its authors, in C++ (github.com/UWSysLab/NOPaxos), if it is built and runs on this machine.

Its packets must be routed through its sequencer, which takes raw sockets and rules of the network. So nobody
starts it here: `NOPAXOS_HOME` names the folder in which it is built, and `NOPAXOS_CONFIG` the configuration
of a group that runs. Its own client makes the calls. The replicas execute nothing, so no answer is checked.
"""

import os
import re
import struct
import subprocess
from pathlib import Path
from statistics import quantiles

from benchmarks.services.contender import Contender, Figures, MeasureError

HOME, CONFIG = "NOPAXOS_HOME", "NOPAXOS_CONFIG"
CALLS_A_SECOND = 20_000
"""About what it can do here; so the client, which counts calls, runs about as long as it should."""
WARM_UP_S = 1
COMPLETED = re.compile(r"Completed (\d+) requests in (\d+\.\d+) seconds")


class NopaxosCpp(Contender):
    """A group that runs already."""

    name = "nopaxos_cpp"

    def missing(self) -> str:
        """The client, or a running group."""
        home, config = os.environ.get(HOME), os.environ.get(CONFIG)
        if not home or not (Path(home) / "bench" / "client").is_file():
            return f"no {HOME}: build github.com/UWSysLab/NOPaxos, and name its folder"
        if not config or not Path(config).is_file():
            return f"no {CONFIG}: start replicas and the sequencer, and name their configuration"
        return ""

    def measure(self, tasks: int, seconds: float, folder: Path) -> Figures:
        """Run its client with so many threads."""
        calls = max(100, round(seconds * CALLS_A_SECOND / tasks))
        latencies = folder / "latencies"
        command = [
            str(Path(os.environ[HOME]) / "bench" / "client"),
            "-c",
            os.environ[CONFIG],
            "-m",
            "nopaxos",
        ]
        command += ["-t", str(tasks), "-n", str(calls), "-w", str(WARM_UP_S), "-l", str(latencies)]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=20 + 20 * seconds, check=True, cwd=folder
            )
            return figures(done.stdout + done.stderr, latencies.with_name("latencies.raw").read_bytes())
        except (subprocess.SubprocessError, OSError) as error:
            raise MeasureError(f"the client of NOPaxos: {error}") from error


def figures(said: str, raw: bytes) -> Figures:
    """What the client says of each thread, and the time that each call took in nanoseconds."""
    rate = sum(int(calls) / float(lasted) for calls, lasted in COMPLETED.findall(said) if float(lasted))
    taken = [ns / 1000 for (ns,) in struct.iter_unpack("=Q", raw[: len(raw) // 8 * 8])]
    if not rate or len(taken) < 2:
        raise MeasureError("the client of NOPaxos tells no figures")
    parts = quantiles(taken, n=100, method="inclusive")
    return Figures(rate, parts[49], parts[98], 0)
