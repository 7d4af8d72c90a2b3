"""N-gram models, estimated from text or read from files, as backgrounds along a text."""
