"""Questions of Overnight's calendar to forms that a grammar allows, with attention.

    python train.py --config overnight_attention_constrained runs/overnight_attention_constrained
    python evaluate.py runs/overnight_attention_constrained --split test --exact-match \
        --grammar configs/overnight_calendar.grammar

As overnight_attention, trained over a background that gives probability 0 to words that no form of
the grammar can continue with. Data: overnight/ in $ZOO_DATA. Expected: 80 to 93 of 168 test
questions right, all answers parse (three seeds), in 6 minutes on one CPU core with training.
"""

from configs import geoquery_attention, variant
from configs.answers._shared import CALENDAR, OVERNIGHT_FORMS
from zoo.data import AsPairs
from zoo.heads import LogLinear

HEAD = LogLinear(background=OVERNIGHT_FORMS)
get_config = variant(geoquery_attention, {"data": AsPairs(CALENDAR), "model.head": HEAD})
