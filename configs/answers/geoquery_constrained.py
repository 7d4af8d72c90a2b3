"""Questions of GeoQuery to logical forms that a grammar allows.

    python train.py --config geoquery_constrained runs/geoquery_constrained
    python evaluate.py runs/geoquery_constrained --split test --exact-match \
        --grammar configs/geoquery.grammar

As geoquery, but over a background that has no mass for words with which no form of the grammar goes
on (Dymetman and Xiao 2016, section 4; Xiao, Dymetman and Gardent 2016). Data: geoquery/ in
$ZOO_DATA. Expected: 24 to 60 of 280 test questions right, all answers parse (three seeds), in 11
minutes on one CPU core with training.
"""

from configs import geoquery, variant
from zoo import priors
from zoo.heads import LogLinear

GRAMMAR = priors.Grammar("configs/geoquery.grammar", start="|||", depth=12, stacks=2)
get_config = variant(geoquery, {"model.head": LogLinear(background=GRAMMAR)})
