"""Czech with a feed-forward 6-gram model, words and letters in ("CWE").

    python train.py --config czech_cwe_6 runs/czech_cwe_6

As czech_cwe_3 with five words of context instead of two. Labeau and Allauzen (2017). Expected, of
one run: test perplexity 324.6, at most 22 minutes on one CPU core.
"""

from configs import czech_we_3, variant
from configs.czech._shared import WORDS_AND_LETTERS

get_config = variant(czech_we_3, {"model.embedding": WORDS_AND_LETTERS, "model.core.order": 6})
