"""A page to look at: curves, passports, bands, surprisal, judgements, attention, differences.

The page is one file of HTML with its style, its script and its pictures in it. It loads nothing,
and the same inputs give the same bytes. Each module makes one part of the page; `page` joins them.
"""
