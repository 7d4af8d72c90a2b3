"""Rare words, as in section 3 of Dymetman and Xiao (2016), on the micro language.

"coûte" ("costs") is always followed by a number. Of numbers and places that training never showed,
the log-linear model knows which are numbers; the softmax knows nothing.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.training import small
from zoo import Experiment, Training, priors
from zoo.cores import LSTM
from zoo.data import Micro, Vocabulary
from zoo.embeddings import Features, Lookup
from zoo.heads import LogLinear, Softmax
from zoo.models import LanguageModel
from zoo.optimizers import Adam
from zoo.sources.micro.micro import PRICE

LANGUAGE = Micro(
    nouns=60, adjectives=20, verbs=20, train_sentences=1200, validation_sentences=50,
    test_sentences=300,
)  # fmt: skip
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


def log_ratios(model, folder):
    """log P(a number | ... costs) - log P(a place | ... costs), means over those never seen."""
    experiment = Experiment(
        data=LANGUAGE,
        vocabulary=VOCABULARY,
        model=model,
        training=Training(batch=16, length=16, epochs=8, optimizer=Adam(0.01), clip=1.0),
    )
    trainer = small.trainer(experiment, folder)
    trainer.train()
    _, arrays, _ = small.last_state(trainer)
    params, lexicon = arrays.params, trainer.task.lexicon
    known = LANGUAGE.lexicon_entries()
    unseen = [word for word in np.flatnonzero(lexicon.counts == 0) if lexicon.words[word] in known]
    of_class = {
        name: [word for word in unseen if name in known[lexicon.words[word]]]
        for name in ("NumType:Card", "Class:Place")
    }
    assert min(map(len, of_class.values())) > 20
    prefixes = [
        sentence[: place + 1]
        for sentence in LANGUAGE.read("test").sentences
        for place, word in enumerate(sentence)
        if word in PRICE.values() and place < 12
    ]
    assert len(prefixes) > 10
    words = np.zeros((len(prefixes), 13), np.int32)  # </s> first, and after the end
    for row, prefix in enumerate(prefixes):
        words[row, 1 : len(prefix) + 1] = [lexicon.ids[word] for word in prefix]
    assert lexicon.ids[lexicon.boundary] == 0
    tables = model.tables(lexicon)
    hidden, _ = model.hidden(
        params, tables, jnp.asarray(words), model.core.initial_carry(len(words))
    )
    last = hidden[jnp.arange(len(words)), jnp.asarray([len(prefix) for prefix in prefixes])]
    head_params = model.head_params(params)
    log_probs = np.asarray(jax.jit(model.head.log_probs)(head_params, tables["head"], last))
    number, place = (log_probs[:, of_class[name]].mean(axis=1) for name in of_class)
    return number - place


@pytest.mark.slow
def test_an_unseen_number_is_likelier_than_an_unseen_place_where_a_number_must_be(tmp_path):
    found = {name: log_ratios(model, tmp_path / name) for name, model in MODELS.items()}
    # In the log-linear model ten times as likely, whatever the subject; the softmax tells nothing.
    assert found["log-linear"].mean() > np.log(10)
    assert found["log-linear"].min() > 0
    assert abs(found["softmax"].mean()) < np.log(1.2)
