"""Czech with a feed-forward trigram model, words and letters in ("CWE").

    python train.py --config czech_cwe_3 runs/czech_cwe_3

Labeau and Allauzen (2017), section 2.2: as czech_we_3, but a word's vector has its own part and one
from its letters. Expected, of one run: test perplexity 337.7, at most 9 minutes on one CPU core.
"""

from configs import czech_we_3, variant
from configs.czech._shared import WORDS_AND_LETTERS

get_config = variant(czech_we_3, {"model.embedding": WORDS_AND_LETTERS})
