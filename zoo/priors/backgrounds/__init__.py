"""Background distributions over words, without n-gram models and grammars."""
