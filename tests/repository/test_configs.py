"""Every config is a recipe that works: shrunk, it takes a step."""

import dataclasses
import importlib
import math
import pathlib
import re

import jax
import numpy as np
import pytest

import configs
from tests.lab.training import small
from zoo.cores import Bidirectional
from zoo.data import AsPairs, Characters, Conllu, MicroPairs, Mixed, Pairs, Prefixed, RawText, Text
from zoo.embeddings import CharCNN, Concat
from zoo.errors import UserError
from zoo.experiment import Experiment
from zoo.heads import (
    AdaptiveSoftmax,
    CharLSTM,
    CNNSoftmax,
    LogLinear,
    MixtureOfSoftmaxes,
    Softmax,
)
from zoo.heads.sampled import SampledHead
from zoo.lab.adaptation import Trained, WithWordsOf
from zoo.lab.papers import Facts, Overnight, Realisations
from zoo.lexicon import Lexicon
from zoo.optimizers import Constant
from zoo.priors import Morphology
from zoo.sources.micro import Micro

LEMMAS = ("nouns", "adjectives", "verbs", "places", "quantities", "years")
SENTENCE = """# text = du pain
1-2\tdu\t_\t_\t_\t_\t_\t_\t_\t_
1\tde\tde\tADP\t_\t_\t3\tcase\t_\t_
2\tle\tle\tDET\t_\tGender=Masc|Number=Sing\t3\tdet\t_\t_
3\tPain{}\tpain\tNOUN\t_\tGender=Masc\t0\troot\t_\t_

"""


def shrunk_data(source, folder):
    """The same kind of source with a handful of sentences."""
    if isinstance(source, Micro):
        return Micro(
            **dict.fromkeys(LEMMAS, 2), train_sentences=9, validation_sentences=3, test_sentences=3
        )
    if isinstance(source, MicroPairs):
        return dataclasses.replace(source, language=shrunk_data(source.language, folder))
    if isinstance(source, Pairs):
        paths = tuple(str(folder / name) for name in ("source", "target"))
        for path, text in zip(paths, ("one two\nthree\n" * 4, "A B C\nD E\n" * 4), strict=True):
            pathlib.Path(path).write_text(text)
        return dataclasses.replace(
            source, train=paths, validation=paths, tests=(paths,) * len(source.tests)
        )
    if isinstance(source, AsPairs):
        return AsPairs(shrunk_data(source.of, folder))
    if isinstance(source, Mixed):
        return dataclasses.replace(
            source, corpora=tuple(shrunk_data(s, folder) for s in source.corpora), sentences=9
        )
    if isinstance(source, WithWordsOf):
        inner = shrunk_data(source.source, folder)
        return WithWordsOf(inner, str(background_run(inner, folder / "background")))
    if isinstance(source, Facts):
        return dataclasses.replace(source, train_questions=9, other_questions=3)
    if isinstance(source, Text) and hasattr(source, "words"):  # lm1b_full, of a filled lexicon
        files_source = shrunk_data(Text(source.train, source.validation, source.tests), folder)
        files = {
            "train": files_source.train,
            "validation": files_source.validation,
            "tests": files_source.tests,
        }
        return dataclasses.replace(source, **files, words=12)
    text = {
        Realisations: "mr,ref\n" + '"name[One], food[two]",One has two\nname[Two],Two is it\n' * 3,
        Overnight: '(example (utterance "all ?") (targetFormula (call listValue (call getProperty '
        "(call singleton en.person) (string !type)))))\n" * 5,
        Prefixed: "which state ?\t_answer ( A , _state ( A ) )\n" * 5,
        Characters: "one two\nthree <unk>\n" * 4,
        Text: "one two Three 7\nfour <unk> two\n" * 4,
        RawText: "One two, Three 7. Four two?\n" * 4,
        Conllu: "".join(SENTENCE.format(number % 3) for number in range(9)),
    }[type(source)]
    path = str(folder / type(source).__name__)
    pathlib.Path(path).write_text(text)
    return dataclasses.replace(
        source, train=path, validation=path, tests=(path,) * len(source.tests)
    )


def background_run(source, folder):
    """The folder of a trained run on the source."""
    recipe = dataclasses.replace(small.experiment(epochs=1), data=source)
    return small.run_in(folder, recipe)


def shrunk_embedding(embedding):
    """The same kind with eight numbers a part."""
    if isinstance(embedding, Concat):
        return Concat(tuple(map(shrunk_embedding, embedding.parts)))
    if isinstance(embedding, CharCNN):
        embedding = dataclasses.replace(embedding, network=shrunk_network(embedding.network))
    return dataclasses.replace(embedding, size=8)


def shrunk_network(network):
    """The same convolution with three filters a width."""
    return dataclasses.replace(
        network,
        letter_size=4,
        filters=tuple(3 for _ in network.filters),
        spelling=dataclasses.replace(network.spelling, longest=12),
    )


def shrunk_core(core):
    """The same kind with eight numbers a layer."""
    if isinstance(core, Bidirectional):
        return dataclasses.replace(core, core=shrunk_core(core.core))
    if getattr(core, "projection", 0):
        return dataclasses.replace(core, size=9, projection=8)
    if getattr(core, "last_size", 0):
        return dataclasses.replace(core, size=9, last_size=8)
    return dataclasses.replace(core, size=8)


def shrunk(experiment: Experiment, folder) -> Experiment:
    """The experiment with the smallest sizes that it can have."""
    model, training = experiment.model, experiment.training
    core = shrunk_core(model.core)
    encoder = getattr(model, "encoder", None)
    encoder_change = {"encoder": shrunk_core(encoder)} if encoder is not None else {}
    head = model.head
    if isinstance(head, AdaptiveSoftmax):
        head = dataclasses.replace(head, cutoffs=(2, 3))
    if isinstance(head, SampledHead):
        head = dataclasses.replace(head, samples=5)
    if isinstance(head, MixtureOfSoftmaxes):
        head = dataclasses.replace(head, size=8)
    if isinstance(head, CNNSoftmax):
        head = dataclasses.replace(
            head,
            network=shrunk_network(head.network),
            sampled=dataclasses.replace(head.sampled, samples=5),
            correction=min(head.correction, 3),
        )
    if isinstance(head, CharLSTM):
        head = dataclasses.replace(head, size=min(head.size, 128))
    data = shrunk_data(experiment.data, folder)
    if isinstance(head.background, Trained):
        head = dataclasses.replace(head, background=Trained(data.workdir))
    vocabulary = experiment.vocabulary
    if vocabulary.open_classes:  # whose features, of seldom words, some words must have
        rare = dataclasses.replace(vocabulary.features[0], count=1)
        vocabulary = dataclasses.replace(vocabulary, features=(rare, *vocabulary.features[1:]))
    tagged_by = tuple(
        dataclasses.replace(prior, treebanks=(data.train,) * len(prior.treebanks))
        if isinstance(prior, Morphology) and prior.treebanks
        else prior
        for prior in vocabulary.features
    )
    vocabulary = dataclasses.replace(vocabulary, features=tagged_by)
    return dataclasses.replace(
        experiment,
        data=data,
        vocabulary=vocabulary,
        model=dataclasses.replace(
            model,
            embedding=shrunk_embedding(model.embedding),
            core=core,
            head=head,
            **encoder_change,
        ),
        training=dataclasses.replace(
            training,
            batch=4,
            length=5,
            epochs=1,
            optimizer=dataclasses.replace(training.optimizer, schedule=Constant()),
        ),
        evaluation=dataclasses.replace(experiment.evaluation, batch=2, length=5),
    )


# Recipes that have not been run to their ends here; those of the 1 Billion Words take accelerators.
WITHOUT_FIGURES = {
    "llrnn_french_sequoia",
    "multi30k_en_cs",
    "ptb_awd_lstm",
    "ptb_awd_lstm_mixture",
} | {name for name in configs.names() if name.startswith(("lm1b", "ud_", "wikitext2"))}


@pytest.mark.parametrize("name", configs.names())
def test_a_config_says_what_it_is(name):
    summary = configs.summary(name)
    assert 10 < len(summary) < 90
    assert summary.endswith(".")
    assert isinstance(configs.load(name), Experiment)
    text = configs.paths()[name].read_text()
    assert f"python train.py --config {name} runs/" in text
    assert name in WITHOUT_FIGURES or re.search(r"\bExpected[:,]", text)


def test_a_config_is_at_most_one_step_from_a_whole_one():
    """Who reads a config has at most one other to open."""
    bases = {}
    for name, path in configs.paths().items():
        text = path.read_text()
        bases[name] = re.findall(r"(\w+)\.get_config\(|variant\((\w+),", text.split('"""', 2)[2])
        bases[name] = [called or base for called, base in bases[name]]
        assert len(bases[name]) < 2 or name == "two_languages_char"
    for name, names in bases.items():
        assert not any(bases[base] for base in names), f"{name} is from {names}"


def test_the_list_has_descriptions_in_a_column():
    line_by_config = {line[2:].split()[0]: line for line in configs.table() if line[2:].strip()}
    softmax, lstm = line_by_config["ptb_softmax"], line_by_config["ptb_awd_lstm"]
    assert softmax.index("A softmax") == lstm.index("The AWD-LSTM") > len("  ptb_awd_lstm_mixture")


def test_configs_to_start_with_have_a_star():
    lines = [line for line in configs.table()[1:] if line[2:].strip()]
    starred = [line for line in lines if line.startswith("* ")]
    without_files = [name for name in configs.names() if name.startswith(("micro_", "own_"))]
    assert [line.split()[1] for line in sorted(starred)] == sorted(without_files)


def test_a_config_is_found_without_its_family():
    assert importlib.import_module("configs.ptb_nce").get_config() == configs.load("ptb_nce")
    assert {path.parent.name for path in configs.paths().values()} == set(configs.FAMILIES)


def test_a_treebank_is_a_config_by_its_name():
    recipe, softmax = configs.load("ud_old_french_altm"), configs.load("ud_old_french_altm_softmax")
    assert recipe.data == softmax.data
    assert recipe.data.train == "ud_old_french_altm/train.conllu"
    assert recipe.data.tests == ("ud_old_french_altm/test.conllu",)
    assert (type(recipe.model.head), type(softmax.model.head)) == (LogLinear, Softmax)
    assert configs.load("ud_treebank") == configs.load("ud_french_gsd")
    for name in ("ud_french", "ud_French_GSD", "ud_softmax"):
        with pytest.raises(UserError, match=r"^the config .* does not exist"):
            configs.load(name)


@pytest.mark.parametrize("name", [name for name in configs.names() if "wikitext2" in name])
def test_heads_of_wikitext_are_those_of_the_penn_treebank(name):
    recipe, ptb_recipe = configs.load(name), configs.load(name.replace("wikitext2", "ptb"))
    if "awd" in name:  # each text has rates of its own
        assert type(recipe.model.head) is type(ptb_recipe.model.head)
        assert recipe.data.blank_lines == "kept"
        return
    assert recipe.training == ptb_recipe.training
    assert recipe.model == ptb_recipe.model
    # Papers count blank lines.
    assert recipe.data.blank_lines == "kept"


# A step of each takes minutes in all: this one stands for the others.
AT_ONCE = {"micro_log_linear"}
STEPPING = [
    name if name in AT_ONCE else pytest.param(name, marks=pytest.mark.slow)
    for name in configs.names()
]


@pytest.mark.parametrize("name", STEPPING)
def test_a_config_shrunk_takes_a_step(name, tmp_path):
    trainer = small.trainer(shrunk(configs.load(name), tmp_path), tmp_path / "run")
    progress = trainer.train()
    assert progress.finished
    assert progress.best < 20
    assert small.last_state(trainer)[0] == trainer.task.epoch_steps >= 1


# Parameters of the authors' code, less the second bias of each gate (4 D a layer), and V; of a
# small relative V (E + 1), 4 S (I + S + 1) for each layer of S cells.
REGULARISED = {
    "ptb_awd_lstm": (24_221_600 - 4 * (1150 + 1150 + 400), 10_000),
    "ptb_awd_lstm_mixture": (21_500_620 - 4 * (960 + 960 + 620), 10_000),
    "wikitext2_awd_lstm": (33_556_078 - 4 * (1150 + 1150 + 400), 33_278),
    "ptb_awd_small": (3_010_000 + 1_351_800 + 901_200, 10_000),
}


@pytest.mark.parametrize("name", REGULARISED)
def test_regularised_models_have_the_papers_parameters(name):
    """24, 22 and 33 million in the papers."""
    expected, words = REGULARISED[name]
    lexicon = Lexicon(tuple(map(str, range(words))), np.ones(words, np.int64))
    model = configs.load(name).model
    shapes = jax.eval_shape(lambda key: model.init(key, lexicon), jax.random.key(0))
    assert sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(shapes)) == expected
    assert f"{expected:,}" in " ".join(configs.paths()[name].read_text().split())


# Billions of parameters in table 1 of Jozefowicz et al. (2016). LSTM-8192-2048 is given as 3.3, yet
# its two tables of words alone have 2 x 793,471 x 2,048 = 3.25: with the core they are 3.40.
LM1B = {
    "lm1b_lstm_512_512": 0.82,
    "lm1b_lstm_1024_512": 0.82,
    "lm1b_lstm_2048_512": 0.83,
    "lm1b_lstm_8192_2048": 3.4,
    "lm1b_lstm_8192_2048_dropout": 3.4,
    "lm1b_big": 1.8,
    "lm1b_cnn_inputs": 1.04,
    "lm1b_cnn_softmax": 0.29,
    # 0.396 here: two networks of 0.072, a core of 0.151, and 128 numbers a word.
    "lm1b_cnn_softmax_correction": 0.39,
    "lm1b_char_lstm": 0.23,
}


@pytest.mark.parametrize("name", LM1B)
@pytest.mark.slow
def test_models_of_the_billion_words_have_the_paper_s_parameters(name):
    lexicon = Lexicon(words=tuple(map(str, range(793_471))), counts=np.ones(793_471, np.int64))
    model = configs.load(name).model
    params = jax.eval_shape(lambda key: model.init(key, lexicon), jax.random.key(0))
    billions = sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(params)) / 1e9
    digits = len(str(LM1B[name]).partition(".")[2])
    assert abs(billions - LM1B[name]) <= 0.8 * 10**-digits


def test_every_config_of_the_billion_words_is_in_the_table():
    without_table_row = {"lm1b_small", "lm1b_full"}
    assert {name for name in configs.names() if name.startswith("lm1b")} == {
        *LM1B,
        *without_table_row,
    }


def test_a_text_of_other_size_cannot_fill_a_lexicon(tmp_path):
    path = tmp_path / "text"
    path.write_text("aa bb\n")
    files = {"train": str(path), "validation": str(path), "tests": (str(path),)}
    source = dataclasses.replace(configs.load("lm1b_full").data, **files, words=5)
    assert {*source.lexicon_entries()} == {"aa", "bb", "ab", "ba"}
    for words, limit in ((6, 4), (2, 2)):
        with pytest.raises(UserError, match=rf"^data\.words is {words}: .* make {limit} at most"):
            dataclasses.replace(source, words=words).lexicon_entries()


@pytest.mark.slow
@pytest.mark.realdata("lm1b/1b_benchmark.dev.tokens")
def test_the_words_of_the_full_billion_fill_a_lexicon_of_the_paper_s_size():
    recipe = configs.load("lm1b_full")
    small = dataclasses.replace(recipe.data, words=50_000)
    lexicon, _ = recipe.vocabulary.build(small)
    assert len(lexicon) == 50_000
    occur = np.array(lexicon.counts) > 0
    text_words = {word for split in small.splits() for word in small.read(split).token_counts()}
    assert text_words < set(lexicon.words)
    assert {*np.array(lexicon.words)[occur]} <= text_words | {"</s>"}
