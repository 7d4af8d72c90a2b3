"""Czech with a feed-forward trigram model, letters in and out ("CWE-CWE").

    python train.py --config czech_cwe_cwe_3 runs/czech_cwe_cwe_3

Labeau and Allauzen (2017), section 2.4: as czech_cwe_3, but the output vectors also come from
letters, and are computed only for the target and noise words. With the full padding of their figure
3 on both sides: --set model.head.network.spelling.padding=full --set
model.embedding.parts.1.network.spelling.padding=full. Such a model cannot memorise words: it has no
dropout and is trained as in the paper, at a constant rate, with Adagrad's accumulator reset twice.
Expected, of one run: test perplexity 511.2, of epoch 9, at most 14 minutes on one CPU core.
"""

from configs import czech_we_3, variant
from configs.czech._shared import letters_out
from zoo.heads import UnigramNoise

get_config = variant(czech_we_3, letters_out(UnigramNoise()))
