"""LSTM-512-512 shrunk, over all 793,471 words, by importance sampling.

    python train.py --config lm1b_full runs/lm1b_full

For what a vocabulary of the size of Jozefowicz et al. (2016), table 1, costs on a CPU: parameters,
steps and exact perplexities. The benchmark's list of words is published as counts without names, so
only the words of the held-out sentences are real. The others are made of two halves of such
words. They never occur, and share in the normaliser and the noise. No word is unknown. Data and all
sizes are as in lm1b_small, but as an exact perplexity takes 26 times as long, the validation text
has 300 sentences.
"""

import dataclasses
import random

from configs import lm1b_lstm_2048_512, variant
from configs.lm1b._shared import HELD_OUT, SMALL
from zoo.data import Text, Vocabulary
from zoo.errors import UserError

WORDS = 793_471


@dataclasses.dataclass(frozen=True)
class FilledText(Text):
    """A text whose lexicon is filled up to `words` words, among them its own and </s>.

    Raises:
      UserError: by `lexicon_entries`, the text has more words, or too few to make so many.
    """

    words: int = WORDS

    def lexicon_entries(self):
        """Returns the words of all splits, and others that are made of two halves of these."""
        words = sorted({w for split in self.splits() for w in self.read(split).token_counts()})
        entries: dict[str, tuple[str, ...]] = dict.fromkeys(words, ())
        draw = random.Random(0)
        for _ in range(100 * self.words):
            if len(entries) >= self.words - 1:
                break
            first, second = draw.choices(words, k=2)
            entries[first[: (len(first) + 1) // 2] + second[len(second) // 2 :]] = ()
        if len(entries) != self.words - 1:
            raise UserError(
                f"data.words is {self.words}: the text has {len(words)} words, and halves of them "
                f"make {len(entries)} at most; give another number."
            )
        return entries


get_config = variant(
    lm1b_lstm_2048_512,
    {
        **SMALL,
        "data": FilledText(
            train=f"{HELD_OUT}[:21216]",
            validation=f"{HELD_OUT}[21216:21516]",
            tests=(f"{HELD_OUT}[22716:]",),
        ),
        "vocabulary": Vocabulary(splits=(), unknown="refused"),
    },
)
