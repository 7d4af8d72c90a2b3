"""Rare words, as in section 3 of Dymetman and Xiao (2016), on the micro language.

"coûte" ("costs") is always followed by a number. Of numbers and places that training never showed,
the log-linear model knows which are numbers; the softmax knows nothing.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.lab.training import small
from zoo import Experiment, Training, priors
from zoo.cores import LSTM
from zoo.data import Micro, Vocabulary
from zoo.embeddings import Features, Lookup
from zoo.heads import LogLinear, Softmax
from zoo.models import LanguageModel
from zoo.optimizers import Adam
from zoo.sources.micro import PRICE

LANGUAGE = Micro(
    nouns=60, adjectives=20, verbs=20, train_sentences=1200, validation_sentences=50,
    test_sentences=300,
)  # fmt: skip
NUMBER, PLACE = "NumType:Card", "Class:Place"
MODELS = {
    "softmax": LanguageModel(Lookup(32), LSTM(32), Softmax()),
    "log-linear": LanguageModel(Features(32), LSTM(32), LogLinear()),
}
VOCABULARY = Vocabulary(
    unknown="refused",
    features=(
        priors.TopWords(50, splits=("train",)),
        priors.Numbers(language=""),
        priors.Affixes(prefixes=(), suffixes=(2, 3, 4), minimum_words=10),
    ),
    background=priors.Unigram(splits=("train",), smoothing=0.5),
)


pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", params=MODELS)
def trained(request, tmp_path_factory):
    """(name, model, parameters, lexicon) after training, for each model."""
    experiment = Experiment(
        data=LANGUAGE,
        vocabulary=VOCABULARY,
        model=MODELS[request.param],
        training=Training(batch=16, length=16, epochs=8, optimizer=Adam(0.01), clip=1.0),
    )
    trainer = small.trainer(experiment, tmp_path_factory.mktemp("run"))
    trainer.train()
    _, arrays, _ = small.last_state(trainer)
    return request.param, experiment.model, arrays.params, trainer.task.lexicon


@pytest.fixture(scope="module")
def prefixes():
    """Beginnings of test sentences, each up to a form of "coûte"."""
    return [
        sentence[: place + 1]
        for sentence in LANGUAGE.read("test").sentences
        for place, word in enumerate(sentence)
        if word in PRICE.values() and place < 12
    ]


def unseen(lexicon, feature):
    """Ids of the words with a feature that training never showed."""
    features = LANGUAGE.lexicon_entries()
    ids = np.flatnonzero(lexicon.counts == 0)
    return [word for word in ids if feature in features.get(lexicon.words[word], ())]


def log_probs_after(prefixes, model, params, lexicon):
    """log p(word | prefix), [prefixes, V]."""
    lengths = np.array([len(prefix) for prefix in prefixes])
    words = np.zeros((len(prefixes), 13), np.int32)  # </s>, id 0, first and after the end
    for row, prefix in enumerate(prefixes):
        words[row, 1 : len(prefix) + 1] = [lexicon.ids[word] for word in prefix]
    tables, carry = model.tables(lexicon), model.core.initial_carry(len(words))
    hidden, _ = model.hidden(params, tables, jnp.asarray(words), carry)
    last = hidden[jnp.arange(len(words)), lengths]
    log_probs = jax.jit(model.head.log_probs)(model.head_params(params), tables["head"], last)
    return np.asarray(log_probs)


def test_the_question_has_enough_words_and_contexts(trained, prefixes):
    lexicon = trained[-1]
    assert lexicon.ids[lexicon.boundary] == 0
    assert min(len(unseen(lexicon, name)) for name in (NUMBER, PLACE)) > 20
    assert len(prefixes) > 10


def test_an_unseen_number_is_likelier_than_an_unseen_place_where_a_number_must_be(
    trained, prefixes
):
    name, model, params, lexicon = trained
    log_probs = log_probs_after(prefixes, model, params, lexicon)
    number, place = (log_probs[:, unseen(lexicon, kind)].mean(axis=1) for kind in (NUMBER, PLACE))
    log_ratios = number - place
    if name == "log-linear":  # ten times as likely, whatever the subject
        assert log_ratios.mean() > np.log(10) and log_ratios.min() > 0
    else:  # the softmax knows nothing of either
        assert abs(log_ratios.mean()) < np.log(1.2)
