"""Losses: plain functions of arrays."""
