"""What carries datagrams: UDP with offload, multicast, TCP, and harm on purpose."""
