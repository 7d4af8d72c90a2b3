"""A small LSTM with a tied softmax on news, to re-score a recogniser's hypotheses.

    python train.py --config speech_softmax runs/speech_softmax
    python -m zoo rescore tune speech/dev/nbest.txt speech/dev/refs.tsv --metric wer
        --run runs/speech_softmax --word-count --lattices speech/dev/lattices --weights weights.json

259,000 words of lm1b in a recogniser's form, lower case without punctuation. Words seen once are
<unk>. Training contrasts 1,024 noise words a step (importance sampling, Jean et al. 2015); scores
are the exact softmax's. The last 600 sentences are for validation. Sentences begin from an empty
state, as hypotheses do.

Data: speech/ in $ZOO_DATA. Expected, of seed 0: validation perplexity 342.2, at most 3 minutes on
one CPU core.
"""

from zoo import Evaluation, Experiment, Training
from zoo.cores import LSTM
from zoo.data import Text, Vocabulary
from zoo.embeddings import Lookup
from zoo.heads import ImportanceSampling, UnigramNoise
from zoo.models import LanguageModel
from zoo.optimizers import Adam, Cosine


def get_config() -> Experiment:
    path = "speech/train.txt"
    return Experiment(
        data=Text(train=f"{path}[:-600]", validation=f"{path}[-600:]"),
        vocabulary=Vocabulary(minimum_count=2),
        model=LanguageModel(
            embedding=Lookup(size=200),
            core=LSTM(size=200, dropout=0.5, input_dropout=0.2),
            head=ImportanceSampling(
                tied=True, noise=UnigramNoise(power=0.75), samples=1024, distinct=True
            ),
        ),
        training=Training(
            batch=32,
            length=24,
            state="sentences",
            shuffle=True,
            optimizer=Adam(learning_rate=0.003, schedule=Cosine(warmup=100)),
            clip=1.0,
            average=0.998,
            epochs=7,
        ),
        evaluation=Evaluation(state="sentences", batch=16, length=32),
    )
