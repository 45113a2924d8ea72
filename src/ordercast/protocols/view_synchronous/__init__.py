"""View-synchronous multicast: all who go from one view to the next deliver the same messages in between."""

from ordercast.protocols.view_synchronous.protocol import PROTOCOL

__all__ = ["PROTOCOL"]
