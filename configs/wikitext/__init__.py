"""WikiText-2: the heads of the Penn Treebank's configs on a text that anyone may download."""
