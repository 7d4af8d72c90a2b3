"""The French treebank, with and without features: Dymetman and Xiao (2016)."""
