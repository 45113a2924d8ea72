"""Runs scenarios on real processes: the same scenarios as in the simulator, judged the same way."""
