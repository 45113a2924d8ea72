"""The hybrid paper's figures: token-site, symmetric and hybrid order in wide areas (ICDCS 1996)."""
