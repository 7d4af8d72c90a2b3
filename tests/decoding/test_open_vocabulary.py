"""Text of words that no lexicon has."""

import dataclasses

import jax
import numpy as np
import pytest

from tests import examples
from zoo.cores import LSTM
from zoo.data import Vocabulary
from zoo.decoding import open_vocabulary
from zoo.decoding.open_vocabulary import search_spellings
from zoo.embeddings import CharCNN, Concat, Lookup
from zoo.errors import UserError
from zoo.heads import CharLSTM, Softmax
from zoo.layers.char_convolution import Convolution
from zoo.lexicon import Lexicon, spelling
from zoo.lexicon.spelling import Spelling
from zoo.models import LanguageModel

WORDS = ("</s>", "<unk>", "ab", "ba", "c")
LEXICON = Lexicon(WORDS, np.ones(5, np.int64), unknown="<unk>", boundary="</s>")
LETTERS = Spelling(unit="characters", longest=4)
MODEL = LanguageModel(
    Concat((Lookup(2), CharCNN(3, Convolution(LETTERS, letter_size=2, widths=(2,))))),
    LSTM(5),
    CharLSTM(LETTERS, size=6, letter_size=3),
)


@pytest.fixture
def params(random):
    return examples.random_params(MODEL, random, LEXICON, scale=1.0)


@pytest.mark.slow
def test_drawn_words_are_read_again_by_their_letters(params):
    """Against the model itself, with the drawn words in a lexicon of their own."""
    for seed in range(20):
        (text,) = open_vocabulary.generate(
            MODEL, params, LEXICON, Vocabulary(), count=1, length=6, seed=seed
        )
        if len(text) > 2:
            break
    assert len(set(text) - set(WORDS)) > 1
    words = list(dict.fromkeys((*WORDS, *text)))
    text_lexicon = Lexicon(
        tuple(words),
        np.zeros(len(words), np.int64),
        unknown="<unk>",
        boundary="</s>",
        alphabet=LEXICON.letters,
    )
    text_params = MODEL.for_lexicon(params, LEXICON, text_lexicon)
    ids = np.array([[text_lexicon.ids[word] for word in ("</s>", *text)]], np.int32)
    hidden, _, _ = MODEL.states(
        text_params, MODEL.tables(text_lexicon), ids, MODEL.initial_carry(1)
    )
    for position, word in enumerate(text):
        key = jax.random.fold_in(jax.random.key(seed), position)
        letters = MODEL.head.sample_spellings(params["head"], hidden[:, position], key)
        assert spelling.word(letters[0], LEXICON, LETTERS) == word


@pytest.mark.slow
def test_the_most_probable_spellings(params):
    texts = open_vocabulary.generate(
        MODEL, params, LEXICON, Vocabulary(), prompt="ab", count=2, length=1, temperature=0
    )
    ids = np.array([[0, 2]], np.int32)
    hidden, _, _ = MODEL.states(params, MODEL.tables(LEXICON), ids, MODEL.initial_carry(1))
    best = search_spellings(MODEL.head, params["head"], hidden[:, -1], 1)[1][0, 0]
    expected = [] if best[0] == spelling.BOUNDARY else [spelling.word(best, LEXICON, LETTERS)]
    assert texts == [["ab", *expected]] * 2


def test_a_prompt_is_put_in_the_vocabulary_s_case(params):
    (text,) = open_vocabulary.generate(
        MODEL, params, LEXICON, Vocabulary(lower_case=True), prompt="AB c", count=1, length=1
    )
    assert text[:2] == ["ab", "c"]


def test_texts_end_before_the_boundary_and_prompts_may_be_new(params):
    texts = open_vocabulary.generate(
        MODEL, params, LEXICON, Vocabulary(), prompt="ab zzzzzzz", count=40, length=9
    )
    assert all(text[:2] == ["ab", "zzzzzzz"] and "</s>" not in text for text in texts)
    assert len({len(text) for text in texts}) > 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temperature": 0.5}, "temperature is 0.5: give 1 or 0"),
        ({"count": 0}, "count 0 and length 30"),
        ({"seed": -1}, "the seed is -1"),
    ],
)
def test_what_is_refused(params, options, message):
    with pytest.raises(UserError, match=message):
        open_vocabulary.generate(MODEL, params, LEXICON, Vocabulary(), **options)


def test_a_head_of_words_does_not_spell(params):
    model = dataclasses.replace(MODEL, head=Softmax())
    with pytest.raises(UserError, match="a Softmax only generates words of the lexicon"):
        open_vocabulary.generate(model, params, LEXICON, Vocabulary())
