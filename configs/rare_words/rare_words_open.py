"""News over infinitely many words: all numbers, and all strings of letters.

    python train.py --config rare_words_open runs/rare_words_open
    python evaluate.py runs/rare_words_open
    python -m zoo generate runs/rare_words_open --features

As rare_words_log_linear, but the lexicon has only the words that occur twice in the training text.
Other strings of digits are words of an open class, whose background falls geometrically with their
length. Other words, with and without a capital, belong to two classes with a letter model each:
log-linear models over an infinite domain (Dymetman and Xiao 2016, section 4). Few strings remain
<unk>. Data: lm1b/ in $ZOO_DATA. Expected: strings outside the lexicon cost 22.0 nats each on the
test. Results: docs/log_linear.md.
"""

from configs import rare_words_softmax, variant
from configs.rare_words_log_linear import LOG_LINEAR
from zoo import priors

RARE = "Word:@not_top"
CLASSES = (
    priors.DigitStrings(("Number:any", "Number:digits", RARE), name="<digits>", share=0.01),
    priors.LetterStrings(
        ("Shape:Capital", RARE),
        name="<Name>",
        share=0.04,
        order=5,
        smoothing=0.8,
        first="capital",
    ),
    priors.LetterStrings((RARE,), name="<word>", share=0.04, order=5, smoothing=0.8, first="other"),
)


get_config = variant(
    rare_words_softmax,
    {
        **LOG_LINEAR,
        "vocabulary.splits": ("train",),
        "vocabulary.open_classes": CLASSES,
    },
)
