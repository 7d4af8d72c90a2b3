"""Judgements: what a model prefers, and what it answers."""
