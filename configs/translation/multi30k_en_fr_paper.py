"""English to French captions, trained as Sutskever et al. did: SGD without dropout.

    python train.py --config multi30k_en_fr_paper runs/multi30k_en_fr_paper

As multi30k_en_fr, trained as in section 3.4: parameters uniform in +-0.08, SGD at a rate of 0.7
without momentum, the gradient of the mean over 128 pairs clipped to a norm of 5, the rate halved
every half epoch after some epochs, and no dropout. The paper has 7.5 epochs of 12 million pairs;
this corpus of 29,000 takes more.
"""

from configs import multi30k_en_fr, variant
from zoo.optimizers import SGD, Decay

get_config = variant(
    multi30k_en_fr,
    {
        "model.core.dropout": 0.0,
        "model.core.input_dropout": 0.0,
        "model.initial_scale": 0.08,
        "training.batch": 128,
        "training.mean_over": "pairs",
        "training.optimizer": SGD(
            learning_rate=0.7, schedule=Decay(after=12, factor=2.0, every=0.5)
        ),
        "training.clip": 5.0,
        "training.epochs": 15,
    },
)
