"""The base of both houses: arrays, files, trust, names of components, processes."""
