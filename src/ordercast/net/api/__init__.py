"""The interface for applications: a group that they send to and receive from."""
