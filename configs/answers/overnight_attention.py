"""Questions of Overnight's calendar domain to logical forms, with attention to them.

    python train.py --config overnight_attention runs/overnight_attention
    python evaluate.py runs/overnight_attention --split test --exact-match \
        --grammar configs/overnight_calendar.grammar

As geoquery_attention, on the questions of overnight: the last 100 of training are the validation
set. Data: overnight/ in $ZOO_DATA. Expected: 68 to 81 of 168 test questions right, 150 to 158
answers parse (three seeds), in 4 minutes on one CPU core with training.
"""

from configs import geoquery_attention, variant
from configs.answers._shared import CALENDAR
from zoo.data import AsPairs

get_config = variant(geoquery_attention, {"data": AsPairs(CALENDAR)})
