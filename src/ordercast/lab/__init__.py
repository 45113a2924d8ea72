"""Experiments on real processes and on models: trials of scenarios, benchmarks, model checking."""
