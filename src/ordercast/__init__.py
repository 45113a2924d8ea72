"""Totally ordered group communication for Python."""
