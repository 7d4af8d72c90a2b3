"""Questions of GeoQuery to forms that a grammar allows, with attention to the question.

    python train.py --config geoquery_attention_constrained runs/geoquery_attention_constrained
    python evaluate.py runs/geoquery_attention_constrained --split test --exact-match \
        --grammar configs/geoquery.grammar

As geoquery_attention, trained over a background that gives probability 0 to words that no form of
the grammar can continue with. Data: geoquery/ in $ZOO_DATA. Expected: 166 to 176 of 280 test
questions right, all answers parse (three seeds), in 3 minutes on one CPU core with training.
"""

from configs import geoquery_attention, variant
from zoo import priors
from zoo.heads import LogLinear

GRAMMAR = priors.Grammar("configs/geoquery.grammar", depth=12, stacks=2)
get_config = variant(geoquery_attention, {"model.head": LogLinear(background=GRAMMAR)})
