"""Encoder-decoders on pairs of sentences."""
