"""Output vectors from the letters of words, to re-score hypotheses.

    python train.py --config speech_cnn_softmax runs/speech_cnn_softmax

As speech_softmax, except for the head: Jozefowicz et al. (2016), section 3.2, with the small
network of Kim et al. (2016), trained by importance sampling. Words outside the training text are
scored by their letters if --add-words lists them.

Data: speech/ in $ZOO_DATA. Expected, of one run: validation perplexity 330.7.
"""

from configs import speech_softmax, variant
from configs.ptb._shared import KIM
from configs.speech._shared import WORDS_AND_LETTERS

get_config = variant(speech_softmax, {"model.embedding": WORDS_AND_LETTERS, "model.head": KIM})
