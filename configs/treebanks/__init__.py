"""Any treebank of Universal Dependencies by its name, with and without features."""
