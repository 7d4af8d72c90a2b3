"""The version of this zoo, which pyproject.toml has, too."""

VERSION = "0.1.0"
