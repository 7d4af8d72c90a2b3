"""Experts: sources of knowledge outside the network that name the next word."""
