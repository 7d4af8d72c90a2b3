"""CPU seconds to make the lexicon and the tables of a log-linear head for a million words.

Words of 1 to 15 letters, with affixes (`priors.Affixes`), the identity of the 2,500 most frequent
words and a word list as features, and a unigram background: about seven features a word. Each part
is timed on its own: the features by the priors, the lexicon with them (`data.with_priors` makes
both), its signatures, the choice of the form of their sums, and the head's tables.

    python -m benchmarks.log_linear_tables [--words 1000000]
"""

import pathlib
import tempfile
import time

import numpy as np

from benchmarks import timing
from zoo import data, priors
from zoo.heads import LogLinear
from zoo.lexicon import Lexicon


def make_words(count: int) -> tuple[str, ...]:
    """Draws distinct words, of stems and endings as natural words have them."""
    random = np.random.default_rng(0)
    letters = np.array([*"eeeeeetttttaaaaooooiiiinnnnsssshhhrrrdlucmwfgypbvk"])
    stems = ["".join(random.choice(letters, n)) for n in random.integers(1, 9, count // 8)]
    endings = ["", *("".join(random.choice(letters, n)) for n in random.integers(1, 6, 400))]
    words: dict[str, None] = {}
    while len(words) < count:
        chosen = random.integers(len(stems), size=count), random.integers(len(endings), size=count)
        words.update(dict.fromkeys(stems[a] + endings[b] for a, b in zip(*chosen, strict=True)))
    return tuple(words)[:count]


def main():
    """Prints the CPU seconds of each part."""
    words = make_words(timing.parser(__doc__, words=1_000_000).parse_args().words)
    counts = (1e9 / np.arange(1, len(words) + 1)).astype(np.int64)
    seconds, head = {}, LogLinear()

    def timed(name, make):
        begun = time.process_time()
        part = make()
        seconds[name] = time.process_time() - begun
        return part

    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "list.txt"
        path.write_text("\n".join(words[::50]), encoding="utf-8")
        features = priors.TopWords(2500), priors.Affixes(), priors.WordList(str(path), "list")
        lexicon = timed("lexicon of the words", lambda: Lexicon(words, counts))
        lexicon = timed(
            "features and background",
            lambda: data.with_priors(lexicon, features, priors.Unigram()),
        )
    timed("signatures", lambda: lexicon.signatures)
    form = timed("choice of the form", lambda: lexicon.signature_form)
    tables = timed("tables of the head", lambda: head.tables(lexicon))
    print(
        f"{len(words):,} words, {len(lexicon.feature_names):,} features, "
        f"{len(lexicon.feature_ids) / len(words):.1f} a word, "
        f"{len(tables['log_mass']):,} signatures, {form.value}"
    )
    for name, value in seconds.items():
        print(f"  {name:25} {value:6.2f} s")
    print(f"  {'in all':25} {sum(seconds.values()):6.2f} s")


if __name__ == "__main__":
    main()
