"""Evaluation: exact figures of a run, each with a passport that tells how it was made."""
