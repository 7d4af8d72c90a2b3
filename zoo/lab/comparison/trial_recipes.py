"""The recipes of the heads that are tried on a text.

All heads have the text, the words, the core and the batches of one recipe. Beside them a head has
the settings of its configs: the cutoffs of an adaptive softmax, the noise words of a sampled loss,
the features of a log-linear head. Learning rates are tried, see `zoo.lab.comparison.trials`.
"""

import dataclasses
import functools
import importlib
import pathlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from zoo import configuration, heads, priors
from zoo.base.trust import user_modules
from zoo.configuration import changed
from zoo.cores import Core
from zoo.data import Conllu
from zoo.embeddings import Features, Lookup
from zoo.errors import UserError
from zoo.experiment import Experiment
from zoo.lab import own_text
from zoo.lab.evaluation.run import first_test
from zoo.lab.training.updates import row_rule
from zoo.models import SequenceToSequence
from zoo.optimizers import Adam, Cosine
from zoo.sources import files

SOFTMAX = "softmax"
# Cutoffs of wikitext2_adaptive and of larger vocabularies.
CUTOFFS = (2000, 5000, 15000, 50000)
# From this many words on a sampled loss is tried without being asked for.
MANY_WORDS = 10_000
# Words times positions up to which a head that spells is tried: it spells each word at each one.
MOST_SPELLED = 2_000_000


class WordCounts(NamedTuple):
    """The words of a text, as far as the choice and the settings of heads depend on them."""

    size: int
    are_letters: bool
    judged_tokens: int
    validation_share: float = 0.0  # tokens of the validation text for each of training


def count_words(experiment: Experiment) -> WordCounts:
    """Builds a recipe's vocabulary, and counts the words that the choice of heads depends on."""
    bare = softmax_recipe(experiment)
    lexicon, corpora = bare.vocabulary.build(bare.data)
    marks = (lexicon.boundary, lexicon.unknown)
    characters = all(len(word) == 1 for word in lexicon.words if word not in marks)
    judged = bare.vocabulary.encode(corpora[first_test(bare)], lexicon).counted.sum()
    validation = len(bare.vocabulary.encode(corpora["validation"], lexicon).words)
    return WordCounts(len(lexicon), characters, int(judged), validation / int(lexicon.counts.sum()))


def softmax_recipe(experiment: Experiment) -> Experiment:
    """Returns the recipe with an untied softmax, without features of words or early stopping."""
    embedding: Any = experiment.model.embedding  # type: ignore[attr-defined]
    changes: dict[str, Any] = {
        "vocabulary.features": (),
        "vocabulary.background": None,
        "vocabulary.open_classes": (),
        "training.patience": 0,
        "training.row_sparse": None,
    }
    if isinstance(embedding, Features):
        changes["model.embedding"] = Lookup(embedding.size)
    if type(experiment.head) is not heads.Softmax or experiment.head.tied:
        changes["model.head"] = heads.Softmax()
    return changed(experiment, changes)


def head_recipe(name: str, experiment: Experiment, words: WordCounts) -> Experiment:
    """Returns the recipe of a head named by --heads, a key of `HEADS` or "module:Class", for a
    text; raises UserError for others."""
    bare = softmax_recipe(experiment)
    if ":" in name:
        return configuration.apply_settings(bare, [f"model.head={name}"])
    if name not in HEADS:
        raise UserError(
            f"--heads {name}: unknown head: give some of {', '.join(HEADS)}, or my_module:MyHead."
        )
    if name in _SPELLING_HEADS and words.are_letters:
        raise UserError(f"--heads {name}: the words of this text are single letters: leave it out.")
    head, changes = HEADS[name]
    return changed(bare, {"model.head": head(experiment, words), **changes(experiment, words)})


def default_heads(experiment: Experiment, words: WordCounts) -> list[str]:
    """Returns the heads that are tried on a text if none are named."""
    names = [SOFTMAX, "tied"]
    if not words.are_letters:
        names.append("log_linear")
    if words.size >= MANY_WORDS // 2:
        names.append("adaptive")
    if words.size >= MANY_WORDS:
        return [*names, "importance", "nce"]
    names.append("mixture")
    spelled = words.size * words.judged_tokens <= MOST_SPELLED
    if spelled and not words.are_letters and not _is_translator(experiment):
        names.append("char_lstm")
    return names


def shorten_warmup(experiment: Experiment, steps: int) -> Experiment:
    """Returns the recipe with a warm-up of at most a fifth of the steps, for a cosine schedule."""
    schedule: Any = experiment.training.optimizer.schedule
    if not isinstance(schedule, Cosine) or schedule.warmup <= steps // 5:
        return experiment
    return changed(experiment, {"training.optimizer.schedule.warmup": steps // 5})


# ------------------------------------------------------------ the settings of each head


def _is_translator(experiment):
    """Whether the model is an encoder-decoder."""
    return isinstance(experiment.model, SequenceToSequence)


def _state_size(experiment) -> int:
    """Returns D, the size of the states that the head sees."""
    core: Core = experiment.model.core
    attention = getattr(experiment.model, "attention", None)
    return core.output_size if attention is None else attention.output_size(core.output_size)


def _tie_embedding(experiment, words):
    """Returns the changes that make the embedding as large as the head's states, so that the head
    can share it."""
    embedding = softmax_recipe(experiment).model.embedding  # type: ignore[attr-defined]
    changes = {"model.embedding": Lookup(_state_size(experiment))}
    if _is_translator(experiment) and experiment.model.source_embedding is None:
        changes["model.source_embedding"] = embedding  # not the embedding that the head shares
    return changes


def _adaptive_head(experiment, words):
    """Makes an adaptive softmax with cutoffs for so many words; raises UserError below ten."""
    if words.size < 10:
        raise UserError(f"--heads adaptive: {words.size} words are too few for clusters.")
    first, second = min(CUTOFFS[0], words.size // 5), min(CUTOFFS[1], words.size // 2)
    larger = [cutoff for cutoff in CUTOFFS[2:] if 2 * cutoff <= words.size]
    return heads.AdaptiveSoftmax((first, second, *larger), division=2.0)


def _mixture_head(kind, experiment, words):
    """Makes a mixture of class `kind` with a softmax's number of parameters, V s + 3 D s = V D."""
    size = _state_size(experiment)
    return kind(components=3, size=max(1, words.size * size // (words.size + 3 * size)))


def _update_read_rows(experiment, words):
    """Returns the changes by which only rows that a sampled loss reads are updated; {} if the
    optimiser or averages need all rows."""
    training = experiment.training
    averages = training.average or training.average_after is not None
    dense = averages or training.accumulate > 1 or row_rule(training.optimizer, 1) is None
    return {} if dense else {"training.row_sparse": True}


def _importance_head(experiment, words):
    """Makes a head of importance sampling with noise words for so many words."""
    noise = heads.UnigramNoise(power=0.75)
    return heads.ImportanceSampling(noise=noise, samples=_sample_count(words, 1024), distinct=True)


def _sample_count(words, limit):
    """Returns the number of noise words: a quarter of the words, at most the limit."""
    return max(1, min(limit, words.size // 4))


def _nce_head(experiment, words):
    """Makes a head of noise-contrastive estimation for so many words."""
    return heads.NCE(noise=heads.UnigramNoise(), samples=_sample_count(words, 100), noise_per="row")


def _log_linear_head(experiment, words):
    """Returns the recipe's own head if it is log-linear, for its settings, or else a log-linear
    head with defaults."""
    return experiment.head if type(experiment.head) is heads.LogLinear else heads.LogLinear()


def _add_features(experiment, words):
    """Returns the changes that give words features: the recipe's, a config's or spelling's."""
    embedding: Any = experiment.model.embedding
    vocabulary = experiment.vocabulary
    if isinstance(experiment.data, Conllu) and not vocabulary.features:
        vocabulary = _treebank_recipe("").vocabulary
    if not isinstance(embedding, Features):
        embedding = Features(embedding.size)
    changes = {"model.embedding": embedding}
    model: Any = experiment.model
    if _is_translator(experiment) and model.source_embedding is None:
        changes["model.source_embedding"] = softmax_recipe(experiment).model.embedding  # type: ignore[attr-defined]
    if vocabulary.features:
        return changes | {
            "vocabulary.features": vocabulary.features,
            "vocabulary.background": vocabulary.background,
        }
    features = (
        priors.TopWords(count=min(3000, max(1, words.size // 4)), splits=("train",)),
        priors.Affixes(suffixes=(1, 2, 3), minimum_words=10),
    )
    background = priors.Unigram(splits=("train",), smoothing=0.5)
    return changes | {"vocabulary.features": features, "vocabulary.background": background}


def _cnn_head(experiment, words):
    """Returns the CNN softmax of its config, sampled by importance."""
    config_head: Any = user_modules.configs().load("ptb_cnn_softmax").head
    return dataclasses.replace(config_head, sampled=_importance_head(experiment, words))


def _char_lstm_head(experiment, words):
    """Makes a head that spells words; raises UserError for pairs."""
    if _is_translator(experiment):
        raise UserError(
            "--heads char_lstm: it is not judged over the words of pairs: leave it out."
        )
    return heads.CharLSTM(size=256)


def _use_adam(rate, experiment, words):
    """Returns the changes that train heads of letters by Adam, as their configs do; {} if the
    recipe has Adam already."""
    if isinstance(experiment.training.optimizer, Adam):
        return {}
    optimizer = Adam(learning_rate=rate, schedule=Cosine(warmup=100))
    return {"training.optimizer": optimizer, "training.clip": 1.0, "training.row_sparse": None}


class Trial(NamedTuple):
    """How a head is tried: the head, and the changes of a recipe with a softmax."""

    head: Callable[[Experiment, WordCounts], heads.Head]
    changes: Callable[[Experiment, WordCounts], dict[str, Any]] = lambda experiment, words: {}


def _plain_trial(head: Callable[[], heads.Head]) -> Trial:
    """Makes the trial of a head without settings or changes."""
    return Trial(lambda experiment, words: head())


HEADS: dict[str, Trial] = {
    SOFTMAX: _plain_trial(heads.Softmax),
    "tied": Trial(lambda experiment, words: heads.Softmax(tied=True), _tie_embedding),
    "self_normalised": _plain_trial(heads.SelfNormalisedSoftmax),
    "log_linear": Trial(_log_linear_head, _add_features),
    "sampled_log_linear": Trial(lambda experiment, words: heads.SampledLogLinear(), _add_features),
    "nce": Trial(_nce_head, _update_read_rows),
    "importance": Trial(_importance_head, _update_read_rows),
    "blackout": Trial(
        lambda experiment, words: heads.BlackOut(samples=_sample_count(words, 1024)),
        _update_read_rows,
    ),
    "adaptive": Trial(_adaptive_head),
    "hierarchical": _plain_trial(heads.HierarchicalSoftmax),
    "huffman": _plain_trial(heads.HuffmanSoftmax),
    "mixture": Trial(functools.partial(_mixture_head, heads.MixtureOfSoftmaxes)),
    "contexts": Trial(functools.partial(_mixture_head, heads.MixtureOfContexts)),
    "cnn": Trial(_cnn_head, functools.partial(_use_adam, 0.002)),
    "char_lstm": Trial(_char_lstm_head, functools.partial(_use_adam, 0.003)),
    "recent": _plain_trial(lambda: heads.WithExpert(priors.RecentWords(), heads.Softmax())),
}
_SPELLING_HEADS = ("log_linear", "sampled_log_linear", "cnn", "char_lstm")


def short_name(name: str) -> str:
    """Returns a head's name for folders, tables and pictures: the class of "module:Class"."""
    return name.rpartition(":")[2]


def check_unique_names(names: Sequence[str]):
    """Raises UserError if two heads have the same short name."""
    short = [short_name(name) for name in names]
    for name in short:
        if short.count(name) > 1:
            raise UserError(f"--heads names {name} twice: name each head once.")


def scale_rate(experiment: Experiment, factor: float) -> Experiment:
    """Returns the recipe with its learning rate multiplied by a factor."""
    rate = experiment.training.optimizer.learning_rate * factor
    optimizer: Any = dataclasses.replace(experiment.training.optimizer, learning_rate=rate)
    return changed(experiment, {"training.optimizer": optimizer})


# ----- the recipe of whatever is given to be tried: a text, pairs, a treebank, or a config

# The fraction of a treebank in one file that is held out for validation, and again for the test.
_HELD_OUT = 10
_FEWEST = 20  # sentences of such a treebank


def load_recipe(
    sources: Sequence[str], letters: bool = False, languages: Sequence[str] = (), lines: str = ""
) -> tuple[Experiment, tuple[str, ...]]:
    """Loads (the recipe that all heads share, notes) from a config, treebank, text or two texts of
    pairs; raises UserError for options of another kind."""
    if len(sources) > 2:
        raise UserError(f"{len(sources)} texts are given: give one, or two for pairs.")
    path = sources[0]
    if len(sources) == 1:
        bank, folder = path.endswith(".conllu"), _path_exists(f"{path}/train.conllu")
        is_path = any(mark in path for mark in "./*") or _path_exists(path)
        config = path.endswith(".py") or not is_path
        options = {"--letters": letters, "--language": languages, "--lines": lines}
        option = next((name for name, value in options.items() if value), None)
        if option and (bank or folder or config):
            kind = "config" if config else "treebank"
            raise UserError(f"{option} is for a text, and {path} is a {kind}: leave it out.")
        if bank:
            return _split_treebank(path)
        if folder:
            return _treebank_recipe(path), ()
        if config:
            return user_modules.configs().load(path), ()
    text_recipe = own_text.choose(sources, letters, languages, lines)
    return text_recipe.experiment(), text_recipe.notes


def _path_exists(path):
    """Whether a path is found, in the working directory or in $ZOO_DATA."""
    return any(candidate.exists() for candidate in files.candidates(path))


def _treebank_recipe(folder):
    """Returns the recipe of the treebank config for a folder of treebank files."""
    user_modules.configs()
    return importlib.import_module("configs.ud_treebank").get_config(folder)


def _split_treebank(path):
    """Returns (recipe, notes) of a treebank in one file: the last tenth is the test, the tenth
    before validation."""
    count = len(Conllu(train=path, validation=path).read("train").sentences)
    if count < _FEWEST:
        raise UserError(f"{path} has {count} sentences: give at least {_FEWEST}.")
    second = count - max(1, count // _HELD_OUT)
    first = second - max(1, count // _HELD_OUT)
    parts = own_text.part_settings([path], first, second)
    notes = f"{path}: {count:,} sentences.", own_text.parts_note(first, second, count, "sentences")
    return changed(_treebank_recipe(str(pathlib.Path(path).parent)), parts), notes
