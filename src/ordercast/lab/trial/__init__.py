"""Scenarios on real operating system processes: the same data as the simulator takes, the same verdict."""
