"""A stand-in for a host: listens on its control socket, and ends on SIGTERM or with its leash.

Run as ``stand_in.py SOCKET LEASH [HOW]``. HOW may be `stubborn` (SIGTERM is ignored) or `broken` (it
complains and ends at once).
"""

import os
import signal
import socket
import sys
from pathlib import Path


def main(path: str, leash: int, how: str) -> None:
    """Listen until the leash ends."""
    if how == "broken":
        sys.exit("the port is taken")
    if how == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    Path(path).unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.bind(path)
        listening.listen(16)
        os.read(leash, 1)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else "")
