"""Runs: what lies on disk."""
