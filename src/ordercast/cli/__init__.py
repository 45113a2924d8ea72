"""The command `ordercast`.

Exit codes: 0 is success; 1 a violation was found, or a service refused a call; 2 the input or the usage was
wrong; 3 a call failed in its service; 4 the outcome of a call is unknown; 70 a defect in
ordercast; 130 interrupted; 141 the reader of the output closed the pipe. Results go to standard output (with
`--json`, as one object). Progress and errors go to standard error.
"""

import sys

INTERRUPTED = 130


def main() -> None:
    """Run the command and exit."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run the command with these arguments and return its exit code."""
    try:
        # Imported here, so that an interrupt during the import of libraries is handled like any other.
        from ordercast.cli.app import run_app

        return run_app(arguments)
    except KeyboardInterrupt:
        print("ordercast: interrupted", file=sys.stderr)
        return INTERRUPTED
