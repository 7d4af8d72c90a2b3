"""Czech with a feed-forward trigram model, words from their letters ("CE").

    python train.py --config czech_ce_3 runs/czech_ce_3

Labeau and Allauzen (2017), section 2.2: as czech_we_3, but a word's vector only comes from its
letters. Expected, of one run: test perplexity 360.3, at most 10 minutes on one CPU core.
"""

from configs import czech_we_3, variant
from configs.czech._shared import LETTERS

get_config = variant(czech_we_3, {"model.embedding": LETTERS})
