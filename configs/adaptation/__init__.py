"""Adaptation: a small model over a trained one."""
