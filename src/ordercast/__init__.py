"""Totally ordered group communication for Python."""

from importlib.metadata import version

__version__ = version("ordercast")
