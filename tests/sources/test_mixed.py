"""Corpora side by side: what an epoch draws, what splits there are, and nothing sized by V."""

import dataclasses

import jax
import numpy as np
import pytest

from tests.lab.training import small
from zoo import configuration
from zoo.cores import LSTM
from zoo.data import Conllu, Mixed, Prefixed, RawText, Text, Vocabulary
from zoo.embeddings import CharCNN, Lookup
from zoo.errors import UserError
from zoo.heads import CharLSTM, CNNSoftmax, Softmax
from zoo.lab.adaptation import WithWordsOf
from zoo.lab.evaluation.leakage import priors_that_saw
from zoo.models import LanguageModel
from zoo.sources.source import Mixture

FRENCH = "un chat\nle chien dort\nil pleut\n"
CZECH = "kočka spí\nprší\n"
TREEBANK = "1\tun\tun\tDET\t_\t_\t0\troot\t_\t_\n\n"


@pytest.fixture
def texts(tmp_path):
    """Two sources, three and two training sentences, two and one tests."""
    paths = {}
    for name, text in {"fr": FRENCH, "cs": CZECH, "fr_test": "un\n", "cs_test": "nic\n"}.items():
        paths[name] = str(tmp_path / f"{name}.txt")
        (tmp_path / f"{name}.txt").write_text(text, encoding="utf-8")
    return (
        Text(paths["fr"], paths["fr"] + "[:1]", (paths["fr_test"], paths["fr_test"])),
        Text(paths["cs"], paths["cs"] + "[-1:]", (paths["cs_test"],)),
    )


@pytest.fixture
def mixed(texts):
    return Mixed(("french", "czech"), texts, (1.0, 3.0))


# ------------------------------------------------------------ draws


def test_draws_have_the_weights_and_come_without_return():
    mixture = Mixture(sizes=(5, 3, 4), weights=(1.0, 2.5, 0.0), sentences=700)
    order = mixture.order(np.random.default_rng(3))
    assert order.shape == (700,)
    text_of = np.digitize(order, [5, 8])
    # Five standard errors of a share of 1 / 3.5.
    assert abs(np.mean(text_of == 0) - 1 / 3.5) < 5 * np.sqrt(0.286 * 0.714 / 700)
    assert not (text_of == 2).any()
    for text, size in enumerate((5, 3)):
        draws = order[text_of == text]
        draws = draws[: len(draws) // size * size].reshape(-1, size)
        np.testing.assert_array_equal(np.sort(draws), np.sort(draws[:1]).repeat(len(draws), 0))
        assert len(np.unique(draws, axis=0)) > 1  # each time in another order


def test_draws_depend_on_the_generator_alone():
    mixture = Mixture((50, 30), (1.0, 1.0), 40)
    first, repeated, next_epoch = (
        mixture.order(np.random.default_rng((7, epoch))) for epoch in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, repeated)
    assert (first != next_epoch).any()


# ------------------------------------------------------------ the source


def test_splits_are_joined_for_training_and_apart_for_judging(mixed):
    assert mixed.splits() == ("train", "validation", "french.test1", "french.test2", "czech.test")
    assert mixed.parts("validation") == ("french.validation", "czech.validation")
    assert mixed.parts("czech.test") == ()
    read = {
        split: [" ".join(sentence) for sentence in mixed.read(split).sentences]
        for split in (*mixed.splits(), *mixed.parts("validation"), "french.train")
    }
    assert read == {
        "train": [*FRENCH.splitlines(), *CZECH.splitlines()],
        "validation": ["un chat", "prší"],
        "french.test1": ["un"],
        "french.test2": ["un"],
        "czech.test": ["nic"],
        "french.validation": ["un chat"],
        "czech.validation": ["prší"],
        "french.train": FRENCH.splitlines(),
    }
    for split in ("test", "german.test", "czech.test1", "czech"):
        with pytest.raises(
            UserError, match=rf"unknown split '{split}'.*czech\.test, french\.train"
        ):
            mixed.read(split)


def test_a_checkpoint_can_be_chosen_by_some_corpora_alone(mixed):
    """The others' validation is a test, and training still has all."""
    chosen = dataclasses.replace(mixed, validated=("czech",))
    assert chosen.parts("validation") == ("czech.validation",)
    assert chosen.parts("train") == ("french.train", "czech.train")
    splits = ("train", "validation", "french.validation", "french.test1", "french.test2")
    assert chosen.splits() == (*splits, "czech.test")
    assert chosen.read("validation").sentences == [["prší"]]
    assert chosen.read("french.validation").sentences == [["un", "chat"]]
    assert chosen.read("train").sentences == mixed.read("train").sentences
    all_validated = dataclasses.replace(mixed, validated=("czech", "french"))
    assert all_validated.splits() == mixed.splits()
    assert all_validated.read("validation").sentences == mixed.read("validation").sentences
    with pytest.raises(
        UserError, match=r"data\.validated names 'german': the corpora are french, "
    ):
        dataclasses.replace(mixed, validated=("german",))


def test_an_epoch_is_as_long_as_said(mixed):
    assert mixed.read("train").mixture == Mixture((3, 2), (1.0, 3.0), 5)
    short = dataclasses.replace(mixed, weights=(), sentences=4)
    assert short.read("train").mixture == Mixture((3, 2), (3, 2), 4)
    assert mixed.read("validation").mixture is None
    assert Vocabulary(lower_case=True).read(mixed, "train").mixture == Mixture((3, 2), (1, 3), 5)


def test_the_lexicon_has_the_words_of_all(mixed):
    lexicon, corpora = Vocabulary(unknown="refused").build(mixed)
    assert set(lexicon.words) == {"</s>", *FRENCH.split(), *CZECH.split()}
    assert lexicon.counts[lexicon.ids["</s>"]] == 5  # of the corpora, not of the draws
    assert [*corpora] == [*mixed.splits()]


def test_what_only_one_corpus_has(tmp_path, texts):
    (tmp_path / "t.conllu").write_text(TREEBANK, encoding="utf-8")
    (tmp_path / "p.tsv").write_text("who ?\tme\n", encoding="utf-8")
    treebank, pairs = str(tmp_path / "t.conllu"), str(tmp_path / "p.tsv")
    source = Mixed(("a", "b", "c"), (texts[1], Conllu(treebank, treebank), Prefixed(pairs, pairs)))
    corpus = source.read("train")
    assert corpus.sentences == [["kočka", "spí"], ["prší"], ["un"], ["who", "?", "|||", "me"]]
    assert corpus.features == [[(), ()], [()], [("POS:DET",)], [()] * 4]
    assert corpus.prefixes == [0, 0, 0, 3]
    assert source.form.fused == "split"
    # Other files are read as the corpus whose files have their suffix, or else as text.
    kinds = {path: type(source.with_test(path)) for path in ("x.conllu", "x.tsv[:3]", "x.txt", "x")}
    assert [*kinds.values()] == [Conllu, Prefixed, Text, Text]
    assert source.with_test("x.conllu").tests == ("x.conllu",)
    # A wrapper is read as what is in it.
    wrapped = WithWordsOf(source.corpora[1], "run")
    assert wrapped.with_test("x.conllu") == source.corpora[1].with_test("x.conllu")
    assert wrapped.texts() == [source.corpora[1]]
    corpora = (source.corpora[0], wrapped, source.corpora[2])
    with_wrapper = dataclasses.replace(source, corpora=corpora)
    assert with_wrapper.form.fused == "split"
    # Other texts are tokenised as all corpora are.
    (tmp_path / "raw.txt").write_text("It's late.\n", encoding="utf-8")
    raw = str(tmp_path / "raw.txt")
    for languages, language in ((("en", "en"), "en"), (("en", "fr"), "")):
        corpora = tuple(
            RawText(raw, raw, language=source_language) for source_language in languages
        )
        assert Mixed(("a", "b"), corpora).form.language == language
    assert with_wrapper.texts() == source.texts() == [*source.corpora]


def test_a_recipe_like_others(mixed):
    assert configuration.from_json(configuration.to_json(mixed)) == mixed
    recipe = configuration.apply_settings(mixed, ["weights=1,0.5", "corpora.1.train=x.txt"])
    assert recipe.weights == (1.0, 0.5)
    assert recipe.corpora[1].train == "x.txt"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"corpora": (), "names": (), "weights": ()}, "corpora is empty"),
        ({"weights": (1.0,)}, "weights has 1 items for 2 corpora"),
        ({"names": ("one",)}, "names has 1 items for 2 corpora"),
        ({"names": ("one", "one")}, "names of letters, digits and hyphens that differ"),
        ({"names": ("one", "t.wo")}, "names of letters, digits and hyphens that differ"),
        ({"weights": (1.0, -0.1)}, "none below 0"),
        ({"weights": (0.0, 0.0)}, "at least one above"),
        ({"weights": (1.0, float("nan"))}, "finite"),
        ({"sentences": -1}, "data.sentences is -1"),
    ],
)
def test_what_cannot_be_mixed_is_refused(mixed, changes, message):
    with pytest.raises(UserError, match=message):
        dataclasses.replace(mixed, **changes)
    with pytest.raises(UserError, match="corpora of that Mixed"):
        Mixed(("all",), (mixed,))


@pytest.mark.slow
def test_leakage_knows_the_parts(mixed):
    def saw(split, splits, path="elsewhere.txt"):
        experiment = dataclasses.replace(
            small.experiment(), data=mixed, vocabulary=Vocabulary(splits=splits)
        )
        lexicon, _ = experiment.build()
        return priors_that_saw(experiment, lexicon, split, path)

    assert saw("french.validation", ("validation",)) == ["vocabulary"]
    assert saw("french.validation", ("train",)) == []
    assert saw("czech.test", ("czech.test",)) == ["vocabulary"]
    assert saw("czech.test", ("french.test1",)) == []
    assert saw("data:mine", ("czech.test",), mixed.corpora[1].tests[0]) == ["vocabulary"]
    assert saw("data:mine", ("train",), mixed.corpora[1].train + "[:1]") == ["vocabulary"]


# ------------------------------------------------------------ training


@pytest.mark.slow
def test_training_draws_anew_every_epoch(mixed, tmp_path):
    recipe = dataclasses.replace(
        small.experiment(epochs=3, checkpoint_every=1, batch=2, length=3),
        data=dataclasses.replace(mixed, sentences=30),
    )
    trainer = small.trainer(recipe, tmp_path / "whole")
    epochs = [trainer.task.epoch(epoch) for epoch in range(3)]
    assert len({tuple(batch_rows.text.words.tolist()) for batch_rows in epochs}) == 3
    assert trainer.task.total_steps == sum(map(len, epochs))
    assert all(len(batch_rows.text.starts) == 30 for batch_rows in epochs)
    resumed = small.trainer(recipe, tmp_path / "again").task.epoch(2)
    np.testing.assert_array_equal(resumed.text.words, epochs[2].text.words)  # as resumed there


@pytest.mark.parametrize(
    ("embedding", "head", "open_vocabulary"),
    [
        (CharCNN(size=6), CharLSTM(size=5), True),
        (CharCNN(size=6), CNNSoftmax(), True),
        (CharCNN(size=6), CNNSoftmax(correction=2), False),
        (Lookup(size=6), CharLSTM(size=5), False),
        (CharCNN(size=6), Softmax(), False),
    ],
)
def test_nothing_of_a_model_of_letters_is_sized_by_the_words(
    mixed, embedding, head, open_vocabulary
):
    """Bytes: the letters are those of every language, too."""
    model = LanguageModel(embedding, LSTM(size=7), head)
    shapes = [
        jax.eval_shape(lambda key, lexicon=lexicon: model.init(key, lexicon), jax.random.key(0))
        for source in (mixed, *mixed.corpora)
        for lexicon in [Vocabulary().build(source)[0]]
    ]
    assert (shapes[0] == shapes[1] == shapes[2]) is open_vocabulary
