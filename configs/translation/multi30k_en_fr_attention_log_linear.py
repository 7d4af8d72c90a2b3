"""English to French captions with attention and a log-linear decoder.

    python train.py --config multi30k_en_fr_attention_log_linear runs/attention_log_linear
    python evaluate.py runs/attention_log_linear

As multi30k_en_fr_attention, small enough to train in minutes: a French word is the set of its
features, in and out: its identity if it is among the 3,000 most frequent of the training text, its
first two and three and its last one to three letters (Dymetman and Xiao 2016, section 3), over the
frequencies of words. English words keep a vector each. Data: multi30k/ in $ZOO_DATA, tokenised and
in lower case as it comes. Expected: perplexity 3.02 on test 2016, BLEU 51.9 with a beam of 2. Time:
19 minutes on one core beside much other work.
"""

from configs import multi30k_en_fr, variant
from configs.translation._shared import ATTENTION, LOG_LINEAR

get_config = variant(
    multi30k_en_fr,
    {
        **ATTENTION,
        **LOG_LINEAR,
        "model.embedding.size": 128,
        "model.source_embedding.size": 128,
        "model.core.size": 128,
        "model.encoder.core.size": 128,
        "training.epochs": 5,
    },
)
