"""The experiments of Hydra (NSDI 2023)."""
