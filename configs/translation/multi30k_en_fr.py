"""English to French captions: an encoder-decoder of two LSTM layers, no attention.

    python train.py --config multi30k_en_fr runs/multi30k_en_fr

The model of Sutskever, Vinyals and Le (2014), its sources reversed, scaled to this corpus.
Embeddings have a large initial scale, so that the encoder separates sources from the first step.
Data: multi30k/ in $ZOO_DATA, tokenised and in lower case as it comes. Expected, of one run:
perplexity 4.52 on test 2016, BLEU 34 with a beam of 12. Time: 105 minutes on one core beside much
other work.
"""

from zoo import Evaluation, Experiment, Training
from zoo.cores import LSTM
from zoo.data import Buckets, Pairs, Vocabulary
from zoo.embeddings import Lookup
from zoo.heads import Softmax
from zoo.models import SequenceToSequence
from zoo.optimizers import Adam, Cosine


def get_config(target: str = "fr") -> Experiment:
    """Returns the experiment; `target` is the extension of the target's files."""
    train, validation, *tests = (
        tuple(f"multi30k/{name}.lc.norm.tok.{side}" for side in ("en", target))
        for name in ("train", "val", "test_2016_flickr", "test_2018_flickr")
    )
    return Experiment(
        data=Pairs(train=train, validation=validation, tests=tuple(tests)),
        vocabulary=Vocabulary(minimum_count=2),
        model=SequenceToSequence(
            embedding=Lookup(size=256, initial_scale=1.0),
            core=LSTM(size=384, layers=2, dropout=0.4, input_dropout=0.3),
            head=Softmax(initial_scale=0.1),
            order="source_reversed",
        ),
        training=Training(
            batch=32,
            buckets=Buckets(padding=0.15, longest=50),
            shuffle=True,
            optimizer=Adam(learning_rate=0.002, schedule=Cosine(warmup=200)),
            clip=1.0,
            epochs=12,
        ),
        evaluation=Evaluation(state="sentences", batch=64),
    )
