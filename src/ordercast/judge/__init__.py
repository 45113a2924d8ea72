"""The judges of traces: one event by event, one over whole columns."""
