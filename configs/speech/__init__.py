"""English for a recogniser's hypotheses: small models of news, a head a config."""
