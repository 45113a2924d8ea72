"""Parts that processes embed: consensus, peer sampling, the sequencing graph."""
