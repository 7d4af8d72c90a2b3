"""Questions of GeoQuery to logical forms, the names copied from the questions.

    python train.py --config geoquery_names runs/geoquery_names
    python evaluate.py runs/geoquery_names --split test --exact-match \
        --grammar configs/geoquery.grammar

As geoquery, but an expert lists the words of the question while the form is generated, and one more
feature marks a word as one of them (Dymetman and Xiao 2016, section 6). Among the words of
questions only names also occur in forms. Data: geoquery/ in $ZOO_DATA. Expected: 94 to 104 of 280
test questions right, 203 to 213 answers parse (three seeds), in 11 minutes on one CPU core with
training.
"""

from configs import geoquery, variant
from zoo import priors
from zoo.heads import LogLinear, WithExpert

HEAD = WithExpert(priors.PrefixWords(), LogLinear())
get_config = variant(geoquery, {"model.head": HEAD})
