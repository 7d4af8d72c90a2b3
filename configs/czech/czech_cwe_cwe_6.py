"""Czech with a feed-forward 6-gram model, letters in and out ("CWE-CWE").

    python train.py --config czech_cwe_cwe_6 runs/czech_cwe_cwe_6

As czech_cwe_cwe_3 with five words of context instead of two. Labeau and Allauzen (2017). Expected,
of one run: test perplexity 485.2, at most 20 minutes on one CPU core.
"""

from configs import czech_we_3, variant
from configs.czech._shared import letters_out
from zoo.heads import UnigramNoise

get_config = variant(czech_we_3, {**letters_out(UnigramNoise()), "model.core.order": 6})
