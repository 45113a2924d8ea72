"""Between two hosts: datagrams and frames, seals, sessions, flow control, fragments."""
