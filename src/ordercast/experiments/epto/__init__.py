"""The experiments of EpTO (Middleware 2015)."""
