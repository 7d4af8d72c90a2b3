"""WikiText-2: configs of the Penn Treebank on a text that anyone may download."""
