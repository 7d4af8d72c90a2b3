"""The AWD-LSTM of Merity, Keskar and Socher (2018) on the Penn Treebank.

    python train.py --config ptb_awd_lstm runs/ptb_awd_lstm

"Regularizing and optimizing LSTM language models", section 5: three layers of 1,150, 1,150 and 400
cells, vectors of 400 numbers in and out, masks of the recurrent weights, of words, and of states
that are locked over time, windows of random length, penalties on states, SGD at 30 whose parameters
are averaged once validation stops improving, 750 epochs. 24,210,800 parameters; the authors' code
has 10,800 more, for a second bias of each gate. A second run from the end of this one is the
paper's fine-tuning:

    python train.py --config ptb_awd_lstm --set init_from=runs/ptb_awd_lstm \
        --set training.average_after=0 --set training.patience=5 --set training.seed=1 \
        runs/ptb_awd_lstm_tuned

The authors end it by the rule that begins the averages. They judge the test in one batch row
(evaluation.batch, 10 here), and their later commands have other settings than the paper. Not run
yet on the whole, so without an expected figure; the paper has a test perplexity of 58.8, and 57.3
after fine-tuning. Data: ptb/ (Mikolov's files) in $ZOO_DATA. Time and memory of a step:
docs/regularisation.md.
"""

from configs.ptb._shared import PTB
from zoo import Evaluation, Experiment, Training
from zoo.cores import LSTM
from zoo.data import RandomWindows, Vocabulary
from zoo.embeddings import Lookup
from zoo.heads import Softmax
from zoo.models import LanguageModel
from zoo.optimizers import SGD


def get_config() -> Experiment:
    return Experiment(
        data=PTB,
        vocabulary=Vocabulary(),
        model=LanguageModel(
            embedding=Lookup(size=400, initial_scale=0.1),
            core=LSTM(
                size=1150,
                layers=3,
                last_size=400,
                input_dropout=0.4,
                dropout=0.3,
                last_dropout=0.0,
                recurrent_dropout=0.5,
                variational=True,
                forget_bias=0.0,
            ),
            head=Softmax(tied=True),
            word_dropout=0.1,
            output_dropout=0.4,
            activation_penalty=2.0,
            temporal_penalty=1.0,
        ),
        training=Training(
            batch=40,
            length=70,
            windows=RandomWindows(),
            optimizer=SGD(learning_rate=30.0, weight_decay=1.2e-6),
            clip=0.25,
            average_after=5,
            epochs=750,
        ),
        evaluation=Evaluation(state="carried", batch=10, length=70),
    )
