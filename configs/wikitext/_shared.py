"""The text of both models, whose blank lines count."""

from zoo.data import Text

WIKITEXT_2 = Text(
    train="wikitext-2/wiki.train.tokens",
    validation="wikitext-2/wiki.valid.tokens",
    tests=("wikitext-2/wiki.test.tokens",),
    blank_lines="kept",
)
