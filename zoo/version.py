"""The version of Zoo. pyproject.toml reads it here; CITATION.cff repeats it."""

VERSION = "0.1.0"
