"""How people and tools look into a running host: its control socket, metrics, and why something waits."""
