"""Passports of record, and the tables of docs/results.md that are made from them."""
