"""A treebank of Universal Dependencies with a softmax: words only, no tags.

    python -m zoo data ud_czech_pdt
    python train.py --config ud_czech_pdt_softmax runs/ud_czech_pdt_softmax
    python evaluate.py runs/ud_czech_pdt_softmax

All but embedding, head and features is as in ud_treebank, so that their figures can be compared.
`python train.py --config ud_treebank_softmax runs/any` takes ud_french_gsd. Not run yet on a whole
treebank, so without an expected figure.
"""

from configs import ud_treebank, variant
from zoo.embeddings import Lookup
from zoo.heads import Softmax

get_config = variant(
    ud_treebank,
    {
        "vocabulary.features": (),
        "vocabulary.background": None,
        "model.embedding": Lookup(size=256),
        "model.head": Softmax(),
    },
)
