"""Captions of photographs in English, for a small model that comes with the repository."""
