"""Your own text, letter by letter: an LSTM with a softmax.

    python -m zoo text my.txt runs/mine --letters
    python train.py --config own_letters runs/mine --set 'data.train=my.txt[:-2000]' \
        --set 'data.validation=my.txt[-2000:-1000]' --set 'data.tests=("my.txt[-1000:]",)'

Every character is a token, blanks and line breaks too, so no tokenizer is needed, and the figure to
read is bits per character. Ranges are of lines; of a line of more than 1,000 characters, each 1,000
count as one. Characters that occur once are <unk>. `zoo text` sets the paths and sizes that fit the
text's length, and prints the whole command; the sizes here are for a megabyte. Expected: 2.55 bits
per character on the test (validation 2.52), by `zoo text` on the first 10,000 lines of char-rnn's
Shakespeare, with 128 cells; at most 9 minutes on two cores beside much other work.
"""

from configs import shakespeare_char, variant
from zoo.data import Characters
from zoo.optimizers import Cosine

get_config = variant(
    shakespeare_char,
    {
        "data": Characters(
            train="text.txt[:-2000]",
            validation="text.txt[-2000:-1000]",
            tests=("text.txt[-1000:]",),
        ),
        "vocabulary.minimum_count": 2,
        "training.optimizer.schedule": Cosine(),
        "training.restart": 0.05,
        "training.epochs": 12,
    },
)
