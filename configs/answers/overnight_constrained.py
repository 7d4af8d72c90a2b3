"""Questions of Overnight's calendar domain to logical forms that a grammar allows.

    python train.py --config overnight_constrained runs/overnight_constrained
    python evaluate.py runs/overnight_constrained --split test --exact-match \
        --grammar configs/overnight_calendar.grammar

As overnight, but over a background that gives probability 0 to words that no form of the grammar
can continue with (Dymetman and Xiao 2016, section 4). Data: overnight/ in $ZOO_DATA. Expected: 23
to 56 of 168 test questions right, all answers parse (three seeds), in 8 minutes on one CPU core
with training.
"""

import dataclasses

from configs import geoquery, variant
from configs.answers._shared import OVERNIGHT, OVERNIGHT_FORMS
from zoo.heads import LogLinear

HEAD = LogLinear(background=dataclasses.replace(OVERNIGHT_FORMS, start="|||"))
get_config = variant(geoquery, {**OVERNIGHT, "model.head": HEAD})
