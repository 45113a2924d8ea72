"""Peer sampling: whom a process gossips with."""

from ordercast.sampling.cyclon import Cyclon, CyclonOptions
from ordercast.sampling.draws import below, choose, draw, mix, stream
from ordercast.sampling.messages import MESSAGES
from ordercast.sampling.sampler import Sampler, Uniform

__all__ = [
    "Cyclon",
    "CyclonOptions",
    "MESSAGES",
    "Sampler",
    "Uniform",
    "below",
    "choose",
    "draw",
    "mix",
    "stream",
]
