"""The recipe of each head that is tried on a text.

All heads have the text, the words, the core and the batches of one recipe. Beside them a head has
the settings of its configs: the cutoffs of an adaptive softmax, the noise words of a sampled loss,
the features of a log-linear head. Learning rates are tried, see `zoo.lab.own_text.trials`.
"""

import dataclasses
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
from zoo.lab.evaluation.run import first_test
from zoo.models import SequenceToSequence
from zoo.optimizers import Adam, Cosine
from zoo.row_updates import row_rule

SOFTMAX = "softmax"
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
    return changed(bare, HEADS[name](experiment, words))


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


# ------------- the settings of each head: changes of a recipe with a softmax


def _is_translator(experiment):
    """Whether the model is an encoder-decoder."""
    return isinstance(experiment.model, SequenceToSequence)


def _state_size(experiment) -> int:
    """Returns D, the size of the states that the head sees."""
    core: Core = experiment.model.core
    attention = getattr(experiment.model, "attention", None)
    return core.output_size if attention is None else attention.output_size(core.output_size)


def _plain_head(make_head):
    """Returns the changes for a head without settings, as a function like the others in `HEADS`."""
    return lambda experiment, words: {"model.head": make_head()}


def _tied_softmax(experiment, words):
    """Ties the softmax to an embedding as large as the head's states."""
    embedding = Lookup(_state_size(experiment))
    return {"model.head": heads.Softmax(tied=True), **_embed(embedding, experiment)}


def _embed(embedding, experiment):
    """Returns the changes that give target words an embedding, and keep the one of source words."""
    changes = {"model.embedding": embedding}
    if _is_translator(experiment) and experiment.model.source_embedding is None:
        model: Any = softmax_recipe(experiment).model
        changes["model.source_embedding"] = model.embedding
    return changes


def _adaptive_softmax(experiment, words):
    """Sets cutoffs for so many words; raises UserError below ten."""
    if words.size < 10:
        raise UserError(f"--heads adaptive: {words.size} words are too few for clusters.")
    first, second = min(CUTOFFS[0], words.size // 5), min(CUTOFFS[1], words.size // 2)
    larger = [cutoff for cutoff in CUTOFFS[2:] if 2 * cutoff <= words.size]
    return {"model.head": heads.AdaptiveSoftmax((first, second, *larger), division=2.0)}


def _mixture(kind):
    """Returns the changes for a mixture with a softmax's parameters: V s + 3 D s = V D."""

    def changes(experiment, words):
        size = _state_size(experiment)
        size = max(1, words.size * size // (words.size + 3 * size))
        return {"model.head": kind(components=3, size=size)}

    return changes


def _sampled(make_head, most_samples):
    """Returns the changes for a head with noise words, a quarter of the words at most; only rows
    that it reads are updated, unless the optimiser or averages need all rows."""

    def changes(experiment, words):
        training = experiment.training
        averages = training.average or training.average_after is not None
        dense = averages or training.accumulate > 1 or row_rule(training.optimizer, 1) is None
        head = make_head(samples=max(1, min(most_samples, words.size // 4)))
        return {"model.head": head} | ({} if dense else {"training.row_sparse": True})

    return changes


def _importance_sampling(samples):
    noise = heads.UnigramNoise(power=0.75)
    return heads.ImportanceSampling(noise=noise, samples=samples, distinct=True)


def _nce(samples):
    return heads.NCE(noise=heads.UnigramNoise(), samples=samples, noise_per="row")


def _log_linear(kind):
    """Returns the changes for a log-linear head, the recipe's own for its settings, and features:
    the recipe's, a treebank's or spelling's."""

    def changes(experiment, words):
        embedding: Any = experiment.model.embedding
        vocabulary = experiment.vocabulary
        if isinstance(experiment.data, Conllu) and not vocabulary.features:
            vocabulary = user_modules.configs().load("ud_treebank").vocabulary
        features, background = vocabulary.features, vocabulary.background
        if not features:
            features = (
                priors.TopWords(count=min(3000, max(1, words.size // 4)), splits=("train",)),
                priors.Affixes(suffixes=(1, 2, 3), minimum_words=10),
            )
            background = priors.Unigram(splits=("train",), smoothing=0.5)
        if not isinstance(embedding, Features):
            embedding = Features(embedding.size)
        return {
            "model.head": experiment.head if type(experiment.head) is kind else kind(),
            "vocabulary.features": features,
            "vocabulary.background": background,
            **_embed(embedding, experiment),
        }

    return changes


def _cnn_softmax(experiment, words):
    """Sets up the CNN softmax of its config, sampled by importance."""
    head: Any = user_modules.configs().load("ptb_cnn_softmax").head
    sampled = HEADS["importance"](experiment, words)["model.head"]
    head = dataclasses.replace(head, sampled=sampled)
    return {"model.head": head, **_use_adam(0.002, experiment)}


def _char_lstm(experiment, words):
    """Sets up a head that spells words; raises UserError for pairs."""
    if _is_translator(experiment):
        raise UserError(
            "--heads char_lstm: it is not judged over the words of pairs: leave it out."
        )
    return {"model.head": heads.CharLSTM(size=256), **_use_adam(0.003, experiment)}


def _use_adam(rate, experiment):
    """Returns the changes that train heads of letters by Adam, as their configs do; {} if the
    recipe has Adam already."""
    if isinstance(experiment.training.optimizer, Adam):
        return {}
    optimizer = Adam(learning_rate=rate, schedule=Cosine(warmup=100))
    return {"training.optimizer": optimizer, "training.clip": 1.0, "training.row_sparse": None}


HEADS: dict[str, Callable[[Experiment, WordCounts], dict[str, Any]]] = {
    SOFTMAX: _plain_head(heads.Softmax),
    "tied": _tied_softmax,
    "self_normalised": _plain_head(heads.SelfNormalisedSoftmax),
    "log_linear": _log_linear(heads.LogLinear),
    "sampled_log_linear": _log_linear(heads.SampledLogLinear),
    "nce": _sampled(_nce, 100),
    "importance": _sampled(_importance_sampling, 1024),
    "blackout": _sampled(heads.BlackOut, 1024),
    "adaptive": _adaptive_softmax,
    "hierarchical": _plain_head(heads.HierarchicalSoftmax),
    "huffman": _plain_head(heads.HuffmanSoftmax),
    "mixture": _mixture(heads.MixtureOfSoftmaxes),
    "contexts": _mixture(heads.MixtureOfContexts),
    "cnn": _cnn_softmax,
    "char_lstm": _char_lstm,
    "recent": _plain_head(lambda: heads.WithExpert(priors.RecentWords(), heads.Softmax())),
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
    return changed(experiment, {"training.optimizer.learning_rate": rate})
