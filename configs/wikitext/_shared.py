"""The text of all models, whose blank lines count, and the sizes of small AWD-LSTMs."""

from configs.ptb import _shared
from zoo.data import Text

WIKITEXT_2 = Text(
    train="wikitext-2/wiki.train.tokens",
    validation="wikitext-2/wiki.valid.tokens",
    tests=("wikitext-2/wiki.test.tokens",),
    blank_lines="kept",
)
# Sizes that leave 33,278 words at five million parameters.
SMALL_AWD = {
    **_shared.SMALL_AWD,
    "data": WIKITEXT_2,
    "model.embedding.size": 128,
    "model.core.size": 300,
    "model.core.last_size": 128,
}
