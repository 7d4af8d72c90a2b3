"""Czech with a feed-forward trigram model, a vector a word in and out ("WE").

    python train.py --config czech_we_3 runs/czech_we_3

Labeau and Allauzen, "Opening the vocabulary of neural language models" (2017), sections 2.2 and
3.4, on other text than the paper: d_e = 128, rectifiers, NCE with 25 noise words a token from the
unigram distribution, batches of 128, Adagrad. Choices that the paper leaves open: one hidden layer
of 128; words seen once are <unk>. The last 5 % of the training sentences are for validation.
Figures count every word and </s>, with <unk> as a word.

The paper keeps the rate constant and resets Adagrad's accumulator twice, every five epochs; so does

    --set training.optimizer.schedule=Constant --set training.optimizer.reset_every=5
    --set model.core.dropout=0 --set model.core.input_dropout=0

On this much smaller text words with letters then overfit: this recipe lowers the rate instead, and
has dropout.

Data: czech/ (newspaper text of PARSEME 1.0) in $ZOO_DATA. Expected, of one run: test perplexity
375.9, at most 7 minutes on one CPU core.
"""

from zoo import Evaluation, Experiment, Training
from zoo.cores import NGram
from zoo.data import Text, Vocabulary
from zoo.embeddings import Lookup
from zoo.heads import NCE, UnigramNoise
from zoo.models import LanguageModel
from zoo.optimizers import Adagrad, Cosine


def get_config() -> Experiment:
    return Experiment(
        data=Text(
            train="czech/train.txt[:-2198]",
            validation="czech/train.txt[-2198:]",
            tests=("czech/test.txt",),
        ),
        vocabulary=Vocabulary(minimum_count=2),
        model=LanguageModel(
            embedding=Lookup(size=128),
            core=NGram(size=128, order=3, dropout=0.3, input_dropout=0.2),
            head=NCE(noise=UnigramNoise(), samples=25, noise_per="token"),
        ),
        training=Training(
            batch=16,
            length=8,
            state="sentences",
            shuffle=True,
            optimizer=Adagrad(learning_rate=0.1, schedule=Cosine()),
            row_sparse=True,
            epochs=15,
        ),
        evaluation=Evaluation(state="sentences", batch=16, length=32),
    )
