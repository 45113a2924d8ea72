"""Model checking: the specifications by TLC, and the real code by an explorer of all interleavings."""
