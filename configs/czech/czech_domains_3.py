"""Captions in Czech from few captions and much news, drawn by weights.

    python train.py --config czech_domains_3 runs/czech_domains_3
    python evaluate.py runs/czech_domains_3

Labeau and Allauzen (2017), sections 3.1 and 4.1, draw their training sentences "from these corpora
given weights" that balance text in the domain and out of it. Here a tenth of the captions is the
domain, and the newspaper text of czech_we_3, the trigram model of which it is, lies outside. The
lexicon is of both, whatever the weights: --set data.weights=1,0 learns from captions alone over the
same words, --set data.weights= draws both as often as they have sentences. The checkpoint is chosen
on captions. Data: multi30k/ and czech/ in $ZOO_DATA, in lower case.

Expected: 4.77 nats a token on captions and 6.55 on news, 4.47 on captions with captions alone; at
most 3 minutes on one CPU core. Results: docs/results.md.
"""

from configs import czech_we_3
from zoo import Experiment, changed
from zoo.data import Mixed, Text


def get_config() -> Experiment:
    """The experiment."""
    news = czech_we_3.get_config()
    captions = Text(
        train="multi30k/train.lc.norm.tok.cs[:2900]",
        validation="multi30k/val.lc.norm.tok.cs",
        tests=("multi30k/test_2016_flickr.lc.norm.tok.cs",),
    )
    return changed(
        news,
        {
            "data": Mixed(
                names=("captions", "news"),
                corpora=(captions, news.data),
                weights=(1.0, 1.0),
                sentences=20_000,
                validated=("captions",),
            ),
            "vocabulary.lower_case": True,
            "training.epochs": 10,
        },
    )
