"""Czech with a feed-forward 6-gram model, a vector a word in and out ("WE").

    python train.py --config czech_we_6 runs/czech_we_6

As czech_we_3 with five words of context instead of two. Labeau and Allauzen (2017). Expected, of
one run: test perplexity 363.1, at most 13 minutes on one CPU core.
"""

from configs import czech_we_3, variant

get_config = variant(czech_we_3, {"model.core.order": 6})
