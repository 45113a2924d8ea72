"""The latencies of EpTO's evaluation (section 6, Figure 5): those its authors measured, or a stand-in.

The authors took them from 226 nodes of PlanetLab, one tick being a millisecond. Where their file is at hand
(`planetlab226/latency_ticks.npz` below the folder of data), there are two ways to use it:

- `MATRIX`: the first 226 processes are the nodes themselves, and pairs without a measurement never hear each
  other, as in the authors' simulator. Pairs beyond them have one of the measured values. This is the authors'
  world.
- `DRAWN`: each pair of processes has one of the measured values, at all sizes alike. Runs with random phases
  have these.

Without the file there is `STAND_IN`, made from what the paper prints: see `ordercast.engines.epto.latencies`.
"""

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from ordercast.core import LocalError

if TYPE_CHECKING:  # at run time only where it is needed: the engine is an extra
    from ordercast.engines.epto.network import Latencies

FILE = Path("planetlab226", "latency_ticks.npz")

Model: TypeAlias = Literal["drawn", "matrix", "stand-in"]
DRAWN: Model = "drawn"
MATRIX: Model = "matrix"
STAND_IN: Model = "stand-in"


def find_file(data: Path | None) -> str:
    """The file below the folder of data; empty without a folder. An error if the folder lacks it."""
    if data is None:
        return ""
    path = data / FILE
    if not path.is_file():
        raise LocalError(
            f"no {FILE} in {data}: this file has EpTO's latencies; leave --data out for a stand-in that is"
            " made from the published figures"
        )
    return str(path)


def file_arguments(file: str) -> dict[str, str | int | float | bool]:
    """What a case needs to read the file wherever it runs; another content makes another case."""
    if not file:
        return {"file": "", "digest": ""}
    latencies_of(DRAWN, file)  # better an error now than one in every task
    return {"file": file, "digest": _digest(file)}


def latencies_of(model: Model, file: str = "", digest: str = "") -> "Latencies":
    """What the engine takes; an error if the file is another one than that of the digest."""
    from ordercast.engines.epto.latencies import of_matrix, published, read_matrix

    if model == STAND_IN:
        return published()
    if not file:
        raise LocalError(f"latencies '{model}' need the file with their values")
    matrix = read_matrix(Path(file))
    if digest and _digest(file) != digest:
        raise LocalError(f"{file} is not the file that the experiment was prepared with")
    return of_matrix(matrix, nodes=model == MATRIX)


def _digest(file: str) -> str:
    return hashlib.sha256(Path(file).read_bytes()).hexdigest()[:16]
