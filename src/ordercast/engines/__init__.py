"""Engines that run one protocol over arrays, for sizes that no simulator of processes reaches."""
