"""The micro language reversed: a small generated pair language, without any files.

    python train.py --config micro_translation runs/micro_translation

Nothing is downloaded. A translation is its source from the last letter to the first, so that its
first words are near their sources without reversing. Each source has one translation, so a
perplexity of 1 is possible. Expected: test perplexity 1.09, and 88 to 89 % of the translations
right in every word, decoded greedily (87.6 and 89.2 % on two machines); about 1 minute of CPU time.
"""

from zoo import Evaluation, Experiment, Training
from zoo.cores import LSTM
from zoo.data import Buckets, MicroPairs, Vocabulary
from zoo.embeddings import Lookup
from zoo.heads import Softmax
from zoo.models import SequenceToSequence
from zoo.optimizers import Adam, Cosine


def get_config() -> Experiment:
    return Experiment(
        data=MicroPairs(),
        vocabulary=Vocabulary(),
        model=SequenceToSequence(
            embedding=Lookup(size=64), core=LSTM(size=192), head=Softmax(), order="forward"
        ),
        training=Training(
            batch=32,
            buckets=Buckets(padding=0.2),
            shuffle=True,
            optimizer=Adam(learning_rate=0.005, schedule=Cosine(warmup=50)),
            clip=1.0,
            epochs=15,
        ),
        evaluation=Evaluation(state="sentences", batch=64),
    )
