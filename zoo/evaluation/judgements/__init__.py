"""Judgements: a model's preferences and answers."""
