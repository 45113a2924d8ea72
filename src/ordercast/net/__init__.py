"""The live runtime: the processes of a plan on real sockets, one operating system process a host."""
