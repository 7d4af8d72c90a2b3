"""Text from a language model."""

import jax
import numpy as np

from zoo.data import Corpus
from zoo.data.open_words import OpenWords
from zoo.data.vocabulary import Vocabulary
from zoo.decoding import steps
from zoo.decoding.sampling import feed, sample
from zoo.errors import UserError, check_seed, named
from zoo.lexicon import Lexicon

# Of the words that are drawn, and of the logits of a step.
_MOST_NUMBERS = 2**30


def generate(
    model,
    params,
    tables,
    lexicon: Lexicon,
    vocabulary: Vocabulary,
    *,
    prompt: str = "",
    count: int = 5,
    length: int = 30,
    temperature: float = 1.0,
    top_k: int | None = None,
    nucleus: float | None = None,
    seed: int = 0,
) -> list[list[str]]:
    """`count` texts that begin with the prompt, as words.

    Each starts from an empty state and the boundary word, and ends before the next boundary or
    after `length` words beside the prompt's. How words are drawn says `zoo.decoding.sample`.

    Raises:
      UserError: a word of the prompt is unknown where the vocabulary refuses those; there is
        neither prompt nor boundary to start from; or a number is out of range.
    """
    words = words_of(prompt, count, length, seed, lexicon, vocabulary)
    boundary = lexicon.boundary_id
    start = [] if boundary is None else [boundary]
    if words:
        missing = [*vocabulary.missing([words], lexicon)]
        if missing and vocabulary.unknown == "refused":
            raise UserError(
                f"words of the prompt are not in the lexicon: {named(missing)}; leave them out "
                "of --prompt, or train with vocabulary.unknown=counted."
            )
        encoded = vocabulary.encode(Corpus("the prompt", [words]), lexicon)
        start += encoded.words[: len(words)].tolist()  # without the boundaries after it
    rows = np.tile(np.array(start, np.int32), (count, 1))
    step = steps.of_language_model(model, params, tables)
    carry = feed(step, rows[:, :-1], model.initial_carry(count))
    drawn, _ = sample(
        step,
        rows[:, -1],
        carry,
        jax.random.key(seed),
        length,
        temperature=temperature,
        top_k=top_k,
        nucleus=nucleus,
        boundary=boundary,
    )
    opened, generator = vocabulary.open_words(lexicon), np.random.default_rng(seed)

    def spelled(word):
        return lexicon.words[word] if opened is None else opened.spelled(int(word), generator)

    return [words + [spelled(word) for word in _until(row, boundary)] for row in np.asarray(drawn)]


def prompt_words(prompt: str, lexicon: Lexicon, vocabulary: Vocabulary) -> list[str]:
    """The words of a prompt, or its characters where these are the words, in the vocabulary's
    case."""
    prompt = prompt.lower() if vocabulary.lower_case else prompt
    return [*prompt] if lexicon.of_characters else prompt.split()


def words_of(
    prompt: str, count: int, length: int, seed: int, lexicon: Lexicon, vocabulary: Vocabulary
) -> list[str]:
    """The words of a prompt (`prompt_words`), if texts can be made with these options.

    Raises:
      UserError: there is neither prompt nor boundary to start from, or a number is out of range.
    """
    if count < 1 or length < 1:
        raise UserError(f"count {count} and length {length} should both be 1 or more.")
    if count * max(length, len(lexicon)) > _MOST_NUMBERS:
        raise UserError(
            f"count {count} and length {length}, over {len(lexicon):,} words, take too much memory "
            f"for one call: give a count of at most "
            f"{max(1, _MOST_NUMBERS // max(length, len(lexicon))):,}, or a lower length."
        )
    check_seed(seed, "the seed")
    words = prompt_words(prompt, lexicon, vocabulary)
    if lexicon.boundary is None and not words:
        raise UserError("this vocabulary has no boundary to start from: give a --prompt.")
    return words


def with_features(words: list[str], lexicon: Lexicon, opened: OpenWords | None = None) -> str:
    """The words, one a line, each with its features and those values that are not 1.

    Strings of a class, which `opened` knows, have the class's. As in table 5 of Dymetman and Xiao
    (2016). UserError if the lexicon has no features.
    """
    if not lexicon.feature_names:
        raise UserError("the words of this run have no features: leave --features out.")
    width = max(map(len, words), default=0)
    return "\n".join(
        f"{word:{width}}  {_features(word, lexicon, opened)}".rstrip() for word in words
    )


def _features(word, lexicon, opened):
    word_id = lexicon.ids.get(word) if opened is None else opened.class_of(word)
    if word_id is None:  # a prompt may have such a word
        return ""
    return ", ".join(
        name if value == 1 else f"{name}={value:g}"
        for name, value in lexicon.features_of(word_id).items()
        if value
    )


def _until(row, boundary):
    ends = [] if boundary is None else np.flatnonzero(row == boundary).tolist()
    return row[: ends[0] if ends else None]
