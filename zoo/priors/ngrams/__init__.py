"""N-gram models: counted here, or read, as backgrounds that run along a text."""
