"""EpTO: epidemic total order for large systems (Matos et al., Middleware 2015)."""

from ordercast.protocols.epto.parameters import Parameters, parameters
from ordercast.protocols.epto.protocol import PROTOCOL

__all__ = ["PROTOCOL", "Parameters", "parameters"]
