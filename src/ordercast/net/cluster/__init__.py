"""A cluster as its file describes it, its keys, and its processes on one machine."""
