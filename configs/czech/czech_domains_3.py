"""Captions in Czech from few captions and much news, drawn by weights.

    python train.py --config czech_domains_3 runs/czech_domains_3

Labeau and Allauzen (2017), sections 3.1 and 4.1, draw their training sentences "from these corpora
given weights" that balance text in the domain and out of it. Here the domain is a tenth of the
captions, and the newspaper text of czech_we_3 is out of it; the model is czech_we_3's trigram
model. The lexicon is made from both, whatever the weights: --set data.weights=1,0 learns only from
captions over the same words, --set data.weights= draws both in proportion to their sentences. The
checkpoint is chosen on captions. Data: multi30k/ and czech/ in $ZOO_DATA, in lower case.

Expected: 4.77 nats a token on captions and 6.56 on news, 4.47 on captions after training on
captions only; at most 3 minutes on one CPU core.
"""

from configs import czech_we_3, variant
from zoo.data import Mixed, Text

CAPTIONS = Text(
    train="multi30k/train.lc.norm.tok.cs[:2900]",
    validation="multi30k/val.lc.norm.tok.cs",
    tests=("multi30k/test_2016_flickr.lc.norm.tok.cs",),
)
get_config = variant(
    czech_we_3,
    {
        "data": Mixed(
            names=("captions", "news"),
            corpora=(CAPTIONS, czech_we_3.get_config().data),
            weights=(1.0, 1.0),
            sentences=20_000,
            validated=("captions",),
        ),
        "vocabulary.lower_case": True,
        "training.epochs": 10,
    },
)
