"""Answers and descriptions: a question or a meaning first, then what is to be said."""
