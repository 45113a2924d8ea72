"""Engines that run one protocol on arrays, for more processes than the simulator can run."""
