"""EpTO for very many processes: the protocol as arrays, which agree with the peers event for event.

Without Numba, importing any module of it fails here, with a message that says what to install.
"""

from importlib.util import find_spec

from ordercast.core import LocalError

if find_spec("numba") is None:
    raise LocalError("this needs numba, which is not installed: pip install 'ordercast[scale]'")
