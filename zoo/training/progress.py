"""How far a run is."""

import dataclasses
import math


@dataclasses.dataclass
class Progress:
    """Where a run is, as kept in its checkpoints; all plain numbers.

    epoch, index: the batch that comes next. loss, tokens, penalty: sums since the epoch's start.
    best: lowest validation log-perplexity, nats; best_step: where; stale: validations since.
    seconds: spent training, over all interruptions. finished: nothing is left to do.
    data: a hash of the training and validation text.
    """

    epoch: int = 0
    index: int = 0
    loss: float = 0.0
    tokens: float = 0.0
    best: float = math.inf
    best_step: int = 0
    stale: int = 0
    seconds: float = 0.0
    finished: bool = False
    data: str = ""
    penalty: float = 0.0
