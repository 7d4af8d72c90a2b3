"""English to French captions: skip connections and a log-linear decoder.

    python train.py --config multi30k_en_fr_skip runs/multi30k_en_fr_skip

As multi30k_en_fr_log_linear, but every layer of the encoder and of the decoder reads the word's
vector, and the next word is predicted from all layers (Graves 2013, section 2). Data: multi30k/ in
$ZOO_DATA, tokenised and in lower case as it comes. Expected, of one run: perplexity 3.38 on test
2016, BLEU 45.7 with a beam of 12. Time: 65 minutes on one core beside other work.
"""

from configs import multi30k_en_fr, variant
from configs.translation._shared import LOG_LINEAR

get_config = variant(multi30k_en_fr, {**LOG_LINEAR, "model.core.skip": True, "training.epochs": 9})
