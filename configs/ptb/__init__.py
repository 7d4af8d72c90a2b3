"""The Penn Treebank: one core and one budget, a head a config."""
