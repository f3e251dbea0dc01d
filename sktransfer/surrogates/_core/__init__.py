"""Mathematics that several surrogates share."""
