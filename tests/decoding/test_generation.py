"""Text from a model is what its own probabilities say."""

import jax
import numpy as np
import pytest

from tests import examples
from zoo.cores import LSTM
from zoo.data.vocabulary import Vocabulary
from zoo.decoding.generation import format_features, generate
from zoo.embeddings import Lookup
from zoo.errors import UserError
from zoo.lexicon import Lexicon
from zoo.models import LanguageModel

MODEL = LanguageModel(embedding=Lookup(size=4, initial_scale=3.0), core=LSTM(size=6))
LEXICON = Lexicon(
    words=("</s>", "<unk>", "a", "b", "c"),
    counts=np.ones(5, np.int64),
    unknown="<unk>",
    boundary="</s>",
)


@pytest.fixture(scope="module")
def params():
    params = MODEL.init(jax.random.key(3), LEXICON)
    params["head"]["weights"] = params["head"]["weights"] * 100  # far from uniform
    return params


def best_continuation(params, words, length):
    """The most probable word again and again, each time from the start of the text."""
    continuation = []
    for _ in range(length):
        ids = np.array([[LEXICON.ids[word] for word in ["</s>", *words, *continuation]]], np.int32)
        hidden, _ = MODEL.hidden(params, examples.NO_TABLES, ids, MODEL.core.initial_carry(1))
        logits = hidden[0, -1] @ params["head"]["weights"].T + params["head"]["bias"]
        continuation.append(LEXICON.words[int(logits.argmax())])
    return continuation[: continuation.index("</s>")] if "</s>" in continuation else continuation


@pytest.mark.parametrize("prompt", ["", "a", "b c", "C a b"])
@pytest.mark.slow
def test_greedy_text_is_the_most_probable_word_at_each_step(params, prompt):
    vocabulary = Vocabulary(lower_case=True)
    (text,) = generate(
        MODEL,
        params,
        examples.NO_TABLES,
        LEXICON,
        vocabulary,
        prompt=prompt,
        count=1,
        length=6,
        temperature=0,
    )
    words = prompt.lower().split()
    assert text == words + best_continuation(params, words, 6)


def test_unknown_words_of_a_prompt_are_the_vocabularys_matter(params):
    (text,) = generate(
        MODEL, params, examples.NO_TABLES, LEXICON, Vocabulary(), prompt="a zzz", count=1, length=1
    )
    assert text[:2] == ["a", "zzz"]
    refusing = Vocabulary(unknown="refused")
    with pytest.raises(
        UserError, match="not in the lexicon: 'zzz'; leave them out of --prompt, or "
    ):
        generate(MODEL, params, examples.NO_TABLES, LEXICON, refusing, prompt="a zzz")


def test_without_boundary_and_prompt_there_is_no_start(params):
    lexicon = Lexicon(words=LEXICON.words, counts=LEXICON.counts, unknown="<unk>")
    vocabulary = Vocabulary(boundary="none")
    with pytest.raises(UserError, match="--prompt"):
        generate(MODEL, params, examples.NO_TABLES, lexicon, vocabulary)
    (text,) = generate(
        MODEL, params, examples.NO_TABLES, lexicon, vocabulary, prompt="a", count=1, length=7
    )
    assert len(text) == 8


def test_a_length_of_zero_is_refused(params):
    with pytest.raises(UserError, match="length"):
        generate(MODEL, params, examples.NO_TABLES, LEXICON, Vocabulary(), length=0)


@pytest.mark.parametrize("seed", [-1, 2**31, 10**20])
def test_a_seed_out_of_range_is_refused(params, seed):
    with pytest.raises(UserError, match=f"the seed is {seed}: give a whole number from 0 to"):
        generate(MODEL, params, examples.NO_TABLES, LEXICON, Vocabulary(), seed=seed)


def test_features_of_generated_words():
    text = format_features(["word 2", "word 12", "none", "word 0"], examples.lexicon())
    assert text.split("\n") == [
        "word 2   length=0.7, name 2, tag a, tag b",
        "word 12  length=-0.4, tag b=2",
        "none",
        "word 0",
    ]


def test_words_without_features_have_none_to_show():
    with pytest.raises(UserError, match="have no features"):
        format_features(["word 1"], examples.plain_lexicon())


def test_a_prompt_of_characters_is_read_by_the_character():
    lexicon = Lexicon(words=("<unk>", *"ab \n"), counts=np.ones(5, np.int64), unknown="<unk>")
    params = MODEL.init(jax.random.key(3), lexicon)
    options = {"prompt": "a ba\n", "count": 2, "length": 3}
    vocabulary = Vocabulary(boundary="none")
    for text in generate(MODEL, params, examples.NO_TABLES, lexicon, vocabulary, **options):
        assert text[:5] == [*"a ba\n"]
        assert len(text) == 8
