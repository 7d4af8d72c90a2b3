"""Grammars: the automata of their rules, and the background that they define."""
