"""Changes of a trained run for its evaluation; each kind is a file and a line of `registry`."""
