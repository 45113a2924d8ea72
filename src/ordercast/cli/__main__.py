"""`python -m ordercast.cli` is the command `ordercast`."""

from ordercast.cli import main

main()
