"""Restaurants described from their properties; names need evidence there.

    python train.py --config e2e_priming runs/e2e_priming
    python -m records.slot_errors runs/e2e_priming --split test

As e2e_plain, but over a background that only allows usual words and the meaning's own: condition-
based priming (Dymetman and Xiao 2016, section 4). Data: e2e/ in $ZOO_DATA. Expected: 0.449 nats a
character on the test, a slot error rate of 47 %.
"""

from configs import e2e_plain, variant
from zoo import priors
from zoo.heads import LogLinear

get_config = variant(
    e2e_plain,
    {
        # Some of 42,061 sentences have the wrong name, which must not make it a usual word.
        "model.head": LogLinear(background=priors.Evidence(separator="|", minimum_count=50)),
    },
)
