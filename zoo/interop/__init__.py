"""Components as modules of Flax: zoo.interop.linen and zoo.interop.nnx.

Nothing is computed here. A module holds the parameters and tables of a head, an embedding or a
core, and hands them to its methods. No other room imports flax.
"""
