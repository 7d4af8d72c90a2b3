"""Czech with a feed-forward 6-gram model, words from their letters ("CE").

    python train.py --config czech_ce_6 runs/czech_ce_6

As czech_ce_3 with five words of context instead of two. Labeau and Allauzen (2017). Expected, of
one run: test perplexity 347.2, at most 7 minutes on one CPU core.
"""

from configs import czech_we_3, variant
from configs.czech._shared import LETTERS

get_config = variant(czech_we_3, {"model.embedding": LETTERS, "model.core.order": 6})
