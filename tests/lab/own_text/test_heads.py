"""The recipe of each head, and the heads that are tried on a text without being named."""

import dataclasses

import jax
import pytest

import configs
from tests.lab.training import small
from zoo import heads
from zoo.data import Vocabulary
from zoo.embeddings import Features, Lookup
from zoo.errors import UserError
from zoo.lab.own_text import heads as own_heads
from zoo.lab.own_text.heads import WordCounts
from zoo.optimizers import SGD, Adam, Cosine
from zoo.priors import Affixes, TopWords

PTB = WordCounts(10_000, are_letters=False, judged_tokens=82_430)


def ptb_recipe(name, words=PTB):
    return own_heads.head_recipe(name, configs.load("ptb_softmax"), words)


def test_heads_have_the_settings_of_their_configs():
    """Of the configs of the Penn Treebank, whose vocabulary has 10,000 words."""
    for name, config in {
        "softmax": "ptb_softmax",
        "adaptive": "ptb_adaptive",
        "hierarchical": "ptb_hierarchical",
        "importance": "ptb_is",
        "mixture": "ptb_mixture",
        "cnn": "ptb_cnn_softmax",
    }.items():
        expected = configs.load(config)
        assert ptb_recipe(name).model == expected.model, name
        assert ptb_recipe(name).vocabulary == expected.vocabulary, name
        row_sparse = expected.training.row_sparse
        assert ptb_recipe(name).training.row_sparse == row_sparse, name
        assert ptb_recipe(name).training.optimizer == expected.training.optimizer, name
    assert ptb_recipe("nce").model == configs.load("ptb_nce").model
    # Their rates differ, so that rates are tried; ptb_char_lstm has shorter windows as well.
    assert ptb_recipe("char_lstm").model.head == configs.load("ptb_char_lstm").model.head
    assert ptb_recipe("char_lstm").training.clip == 1.0


def test_a_treebank_keeps_its_features_for_the_log_linear_head():
    treebank = configs.load("ud_treebank")
    words = WordCounts(9000, are_letters=False, judged_tokens=10_000)
    assert own_heads.head_recipe("log_linear", treebank, words).model == treebank.model
    assert own_heads.head_recipe("log_linear", treebank, words).vocabulary == treebank.vocabulary
    softmax = own_heads.head_recipe("softmax", treebank, words)
    softmax_config = configs.load("ud_treebank_softmax")
    assert (softmax.model, softmax.vocabulary) == (softmax_config.model, softmax_config.vocabulary)
    # The same treebank, of which the recipe knows no features.
    tagged = own_heads.head_recipe("log_linear", softmax_config, words)
    assert tagged.vocabulary == treebank.vocabulary
    assert isinstance(tagged.model.embedding, Features)


def test_words_of_a_text_have_the_features_of_their_spelling():
    log_linear = ptb_recipe("log_linear")
    top, affixes = log_linear.vocabulary.features
    assert top == TopWords(count=2500, splits=("train",))
    assert affixes == Affixes(suffixes=(1, 2, 3), minimum_words=10)


@pytest.mark.parametrize("name", [*own_heads.HEADS, "tests.lab.own_text.test_heads:MyHead"])
def test_every_head_has_parameters_for_few_words(name):
    recipe = small.experiment()
    words = own_heads.count_words(recipe)
    assert words.size == 13 and not words.are_letters
    tried = own_heads.head_recipe(name, recipe, words)
    lexicon, _ = tried.build()
    assert len(lexicon) == 13
    assert (tried.training.batch, tried.model.core) == (recipe.training.batch, recipe.model.core)
    shapes = jax.eval_shape(lambda: tried.model.init(jax.random.key(0), lexicon))
    assert shapes["head"]


@dataclasses.dataclass(frozen=True)
class MyHead(heads.Softmax):
    """A head of the user's own."""


def test_the_settings_follow_the_number_of_words():
    assert ptb_recipe("adaptive", PTB._replace(size=33_278)).model.head.cutoffs == (
        2000,
        5000,
        15000,
    )
    assert ptb_recipe("adaptive", PTB._replace(size=200_000)).model.head.cutoffs[2:] == (
        15000,
        50000,
    )
    assert ptb_recipe("adaptive", PTB._replace(size=100)).model.head.cutoffs == (20, 50)
    assert ptb_recipe("importance", PTB._replace(size=100)).model.head.samples == 25
    # 100 s + 3 * 256 s = 100 * 256
    assert ptb_recipe("mixture", PTB._replace(size=100)).model.head.size == 29


def test_default_heads():
    def default_heads(count, judged_tokens=1000, are_letters=False, config="ptb_softmax"):
        return own_heads.default_heads(
            configs.load(config), WordCounts(count, are_letters, judged_tokens)
        )

    assert default_heads(60, are_letters=True) == ["softmax", "tied", "mixture"]
    assert default_heads(500) == ["softmax", "tied", "log_linear", "mixture", "char_lstm"]
    assert default_heads(500, judged_tokens=100_000) == ["softmax", "tied", "log_linear", "mixture"]
    assert default_heads(500, config="micro_translation") == [
        "softmax",
        "tied",
        "log_linear",
        "mixture",
    ]
    assert default_heads(6000, judged_tokens=10_000) == [
        "softmax",
        "tied",
        "log_linear",
        "adaptive",
        "mixture",
    ]
    assert default_heads(30_000) == [
        "softmax",
        "tied",
        "log_linear",
        "adaptive",
        "importance",
        "nce",
    ]


def test_pairs_keep_the_embedding_of_their_sources():
    pairs = configs.load("multi30k_en_fr")
    words = WordCounts(6000, are_letters=False, judged_tokens=10_000)
    for name in ("tied", "log_linear"):
        model = own_heads.head_recipe(name, pairs, words).model
        assert model.source_embedding == pairs.model.embedding == Lookup(256, initial_scale=1.0)
    tied = own_heads.head_recipe("tied", pairs, words).model
    assert tied.embedding.size == tied.core.output_size == 384


def test_a_long_warm_up_is_shortened():
    adam = Adam(schedule=Cosine(warmup=100))
    recipe = small.experiment(optimizer=adam)
    assert own_heads.shorten_warmup(recipe, 500) == recipe
    shorter = own_heads.shorten_warmup(recipe, 50)
    assert shorter.training.optimizer == Adam(schedule=Cosine(warmup=10))
    plain = small.experiment(optimizer=SGD())
    assert own_heads.shorten_warmup(plain, 1) == plain
    assert own_heads.scale_rate(plain, 0.5).training.optimizer == SGD(learning_rate=0.5)


def test_rows_are_updated_only_where_the_optimiser_can():
    momentum = SGD(momentum=0.9)
    recipe = small.experiment(optimizer=momentum)
    words = own_heads.count_words(recipe)
    assert own_heads.head_recipe("nce", recipe, words).training.row_sparse is None
    assert own_heads.head_recipe("nce", small.experiment(), words).training.row_sparse
    for fields in ({"optimizer": SGD(weight_decay=1e-6)}, {"average_after": 5}, {"average": 0.9}):
        recipe = own_heads.head_recipe("nce", small.experiment(**fields), words)
        assert recipe.training.row_sparse is None
    # A recipe that asks for it is tried with heads that read whole tables, too.
    sparse_recipe = small.experiment(row_sparse=True)
    assert own_heads.head_recipe("tied", sparse_recipe, words).training.row_sparse is None
    assert own_heads.head_recipe("nce", sparse_recipe, words).training.row_sparse


def test_heads_that_do_not_fit_are_refused():
    with pytest.raises(UserError, match=r"--heads gpt: unknown head: give some"):
        ptb_recipe("gpt")
    letters = WordCounts(60, are_letters=True, judged_tokens=1000)
    with pytest.raises(UserError, match=r"--heads cnn: the words of this text are single letters"):
        ptb_recipe("cnn", letters)
    with pytest.raises(UserError, match=r"--heads names softmax twice"):
        own_heads.check_unique_names(["softmax", "nce", "softmax"])
    with pytest.raises(UserError, match="char_lstm"):
        own_heads.head_recipe("char_lstm", configs.load("micro_translation"), PTB)


def test_the_words_of_a_text_are_counted():
    recipe = small.experiment(vocabulary=Vocabulary(minimum_count=5))
    lexicon, corpora = recipe.build()
    words = own_heads.count_words(recipe)
    validation = corpora["validation"].sentences
    assert words.judged_tokens == sum(len(sentence) + 1 for sentence in validation)  # with </s>
    assert words.size == len(lexicon)
    train = sum(len(sentence) + 1 for sentence in corpora["train"].sentences)
    assert words.validation_share == words.judged_tokens / train  # this text has no test
