"""Ordering protocols, each a package that offers a `PROTOCOL`; `ordercast.catalogue` finds them."""
