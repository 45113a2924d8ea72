"""The deterministic simulator: virtual time, modelled hosts and networks, seeded faults."""
