"""One live host: runs processes of a plan on sockets, with their timers, their state and their trace."""
