"""EpTO for very many processes: the protocol as arrays, which agree with the peers event for event.

Without Numba, importing any module of it fails here, with a message that says what to install. Numba keeps
what it has compiled on disk, and looks for changes in a function's own file only, though much is inlined from
others; so what it keeps is filed under a digest of all sources of this package.
"""

import hashlib
from importlib.util import find_spec
from pathlib import Path

from ordercast.core import LocalError

if find_spec("numba") is None:
    raise LocalError("this needs numba, which is not installed: pip install 'ordercast[scale]'")


def _file_compiled_by_sources() -> None:
    from numba import config

    if config.CACHE_DIR:  # type: ignore[attr-defined]  # it is set when Numba starts
        return  # somebody has chosen a place
    folder = Path(__file__).parent
    digest = hashlib.sha256()
    for source in sorted(folder.glob("*.py")):
        digest.update(source.read_bytes())
    place = folder / "__pycache__" / digest.hexdigest()[:16]
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError:
        return  # it is not ours to write in: Numba finds another place
    config.CACHE_DIR = str(place)  # type: ignore[attr-defined]


_file_compiled_by_sources()
