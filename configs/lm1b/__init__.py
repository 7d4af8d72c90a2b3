"""The 1 Billion Word benchmark, table 1 of Jozefowicz et al. (2016): recipes for accelerators."""
