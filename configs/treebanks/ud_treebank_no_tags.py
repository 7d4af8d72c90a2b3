"""A treebank of Universal Dependencies with words and background, but no tags: the control.

    python -m zoo data ud_czech_pdt
    python train.py --config ud_czech_pdt_no_tags runs/ud_czech_pdt_no_tags
    python evaluate.py runs/ud_czech_pdt_no_tags

Only the tags are left out of ud_treebank, so that the difference of the two is what the tags are
worth. ud_treebank_softmax also has another embedding, head and no background: its difference is not
that of the tags alone. `python train.py --config ud_treebank_no_tags runs/any` takes ud_french_gsd.
Not run yet on a whole treebank, so without an expected figure.
"""

from configs import ud_treebank, variant
from zoo import priors

WORDS = priors.TopWords(count=100_000, splits=("train",))
get_config = variant(ud_treebank, {"vocabulary.features": (WORDS,)})
