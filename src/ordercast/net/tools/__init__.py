"""Tools to look into a running host: its control socket, its metrics, and why something waits."""
