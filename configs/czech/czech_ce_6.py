"""Czech with a feed-forward 6-gram model, words from their letters ("CE").

    python train.py --config czech_ce_6 runs/czech_ce_6

As czech_ce_3 with five words of context instead of two. Labeau and Allauzen (2017). Expected, of
one run: test perplexity 347.2, at most 7 minutes on one CPU core.
"""

from configs import czech_we_3
from configs.czech._shared import LETTERS
from zoo import Experiment, changed


def get_config() -> Experiment:
    return changed(czech_we_3.get_config(), {"model.embedding": LETTERS, "model.core.order": 6})
