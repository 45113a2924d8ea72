"""Peer sampling: whom a process gossips with."""

from ordercast.components.sampling.cyclon import CONTACTS, Cyclon, CyclonOptions
from ordercast.components.sampling.draws import below, choose, draw, mix, stream
from ordercast.components.sampling.messages import MESSAGES
from ordercast.components.sampling.sampler import Sampler, Uniform

__all__ = [
    "CONTACTS",
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
