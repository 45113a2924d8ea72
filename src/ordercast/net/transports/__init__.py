"""Transports of datagrams: UDP with offload, multicast, TCP, and impairment on purpose."""
