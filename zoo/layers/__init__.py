"""Layers: recurrences, convolutions, embeddings and attention, of which models are built.

Recipes and users name them by their doors: `zoo.cores`, `zoo.embeddings`, `zoo.attention`, and
`zoo.networks`.
"""
