"""Answers and descriptions: a question or a meaning first, then its answer or description."""
