"""The links between hosts: datagrams and frames, seals, sessions, flow control, fragments."""
