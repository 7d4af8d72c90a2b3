"""Passports of record, and the tables of docs/results.md and docs/results/ that are made from them."""
