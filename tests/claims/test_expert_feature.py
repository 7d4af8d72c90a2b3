"""The expert feature, as in section 6 of Dymetman and Xiao (2016): facts that training never had.

Of countries that no training question is about, the model with the expert says the capital and the
currency; without it, every capital is as good as any other.
"""

import jax.numpy as jnp
import numpy as np
import pytest

from tests.lab.training import small
from zoo import Experiment, Training, priors
from zoo.cores import LSTM
from zoo.data import Vocabulary
from zoo.data.batches import Batches
from zoo.embeddings import Features
from zoo.heads import LogLinear, WithExpert
from zoo.lab.papers import Facts
from zoo.models import LanguageModel
from zoo.optimizers import Adam

LANDS = 30


@pytest.fixture
def source(tmp_path):
    rows = [f"land{n}\tcapital{n}\tmoney{n}" for n in range(LANDS)]
    path = tmp_path / "lands.tsv"
    path.write_text("\n".join(["land\tcapital\tcurrency", *rows]), encoding="utf-8")
    return Facts(str(path), validation=5, test=5, train_questions=400, other_questions=60)


def log_probs_of_values(head, source, folder):
    """log p of each value in the answers about lands that training did not have, and of others.

    The second are of all other words of the answers.
    """
    experiment = Experiment(
        data=source,
        vocabulary=Vocabulary(unknown="refused", features=(priors.Morphology(),)),
        model=LanguageModel(Features(16), LSTM(24), head),
        training=Training(
            batch=16, length=20, state="sentences", epochs=16, optimizer=Adam(0.01), clip=1.0
        ),
    )
    trainer = small.trainer(experiment, folder)
    trainer.train()
    params, lexicon, model = (
        small.last_state(trainer)[1].params,
        trainer.task.lexicon,
        experiment.model,
    )
    text = experiment.vocabulary.encode(source.read("test"), lexicon)
    (batch,) = Batches(text, len(text.starts), 30, "sentences", lexicon.ids[lexicon.boundary])
    log_prob, _ = model.log_prob(
        params,
        model.tables(lexicon),
        jnp.asarray(batch.words),
        jnp.asarray(batch.targets),
        model.initial_carry(len(batch.words)),
    )
    values = np.isin(np.char.rstrip(lexicon.words, "0123456789"), ["capital", "money"])
    values &= np.char.isdigit([word[-1] for word in lexicon.words])
    is_value = values[batch.targets]
    assert (lexicon.counts[batch.targets[is_value]] == 0).all()
    counted = (batch.positions >= 0) & text.counted[batch.positions]
    return np.asarray(log_prob)[counted & is_value], np.asarray(log_prob)[counted & ~is_value]


@pytest.mark.slow
def test_facts_that_training_never_had(source, tmp_path):
    expert = WithExpert(priors.KnowledgeBase(source.path), LogLinear())
    with_expert, rest_with_expert = log_probs_of_values(expert, source, tmp_path / "with")
    without_expert, rest_without_expert = log_probs_of_values(
        LogLinear(), source, tmp_path / "without"
    )
    assert len(with_expert) == len(without_expert) > 30
    # Switched on where a value comes, not elsewhere; alone it is a guess.
    assert with_expert.mean() > np.log(0.8)
    assert rest_with_expert.mean() > rest_without_expert.mean() - 0.1
    # All capitals have the same features, so that none can have more than its share.
    assert without_expert.max() <= -np.log(LANDS) + 1e-4
