"""The version of Zoo; pyproject.toml has the same."""

VERSION = "0.1.0"
