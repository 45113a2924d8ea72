"""The gateway: HTTP and JSON for clients outside, which call the service of a cluster."""
