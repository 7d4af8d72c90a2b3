"""Questions of Overnight's calendar domain to logical forms with a softmax over words.

    python train.py --config overnight runs/overnight
    python evaluate.py runs/overnight --split test --exact-match \
        --grammar configs/overnight_calendar.grammar

For comparison with overnight_constrained. The last 100 training questions are the validation set.
Data: overnight/ in $ZOO_DATA. Expected: 2 to 5 of 168 test questions right, 114 to 151 answers
parse (three seeds), in 2 minutes on one CPU core with training.
"""

from configs import geoquery, variant
from configs.answers._shared import OVERNIGHT

get_config = variant(geoquery, OVERNIGHT)
