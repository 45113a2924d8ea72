"""Parts that processes embed: consensus, peer sampling."""
