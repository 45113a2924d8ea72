"""One sequencer orders the messages of all: the token-site protocol of the hybrid paper, made fault
tolerant."""

from ordercast.protocols.token_site.protocol import PROTOCOL, TokenSiteOptions, deploy

__all__ = ["PROTOCOL", "TokenSiteOptions", "deploy"]
