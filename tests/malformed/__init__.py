"""Malformed input of every reader and command, and the sentence that each gets."""
