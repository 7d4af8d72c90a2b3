"""Trials: several heads trained on one text for the same time or steps, and compared.

`recipes` makes the recipe of each head, `plan` keeps the budget of each in the folder of the
trials, `training` trains and judges a run, and `summary` and `picture` tell what came out.
"""
