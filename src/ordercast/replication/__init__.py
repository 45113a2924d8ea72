"""Protocols that replicate services, each a package that offers a `PROTOCOL`; `ordercast.catalogue` finds
them."""
