"""Grammars: their rules, and the background that they are."""
