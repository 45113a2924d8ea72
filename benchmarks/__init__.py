"""Measurements, run by hand and never by the tests: their numbers depend on the machine."""
