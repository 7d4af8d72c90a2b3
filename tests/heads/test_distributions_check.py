"""Heads of another module are checked where they are judged: these are in the tests'."""

import dataclasses

import jax
import jax.numpy as jnp
import pytest

from tests import examples
from zoo.attention import Bahdanau
from zoo.cores import LSTM
from zoo.embeddings import Lookup
from zoo.errors import UserError
from zoo.heads import Head, Softmax, WithCache, WithExpert, distributions
from zoo.models import LanguageModel, SequenceToSequence
from zoo.priors import KnowledgeBase

LEXICON = examples.plain_lexicon(13)


@dataclasses.dataclass(frozen=True)
class Offset(Softmax):
    """A softmax whose methods may be off by some nats."""

    log_prob_off: float = 0.0
    log_probs_off: float = 0.0

    def _log_probs(self, params, tables, hidden, context, prepared):
        log_probs = super()._log_probs(params, tables, hidden, context, prepared)
        return log_probs + self.log_probs_off

    def _log_prob_and_log_z(self, params, tables, hidden, targets, context, prepared):
        log_prob, log_z = super()._log_prob_and_log_z(
            params, tables, hidden, targets, context, prepared
        )
        return log_prob + self.log_prob_off, log_z


def check(head):
    params = jax.tree.map(lambda x: x + 0.1, head.init(jax.random.key(1), 7, LEXICON))
    distributions.check(head, params, head.tables(LEXICON), 7)


def test_a_head_whose_methods_agree_passes():
    check(Offset())


@dataclasses.dataclass(frozen=True)
class Masked(Softmax):
    """A softmax over the words after the first, which has the probability 0; see `shift`."""

    shift: float = 0.0  # added to log p of the first word by one of the two methods

    def _log_probs(self, params, tables, hidden, context, prepared):
        log_probs = super()._log_probs(params, tables, hidden, context, prepared)
        return jax.nn.log_softmax(log_probs.at[..., 0].set(-jnp.inf))

    def _log_prob_and_log_z(self, params, tables, hidden, targets, context, prepared):
        log_probs = self._log_probs(params, tables, hidden, context, prepared)
        log_prob = jnp.take_along_axis(log_probs, targets[..., None], axis=-1)[..., 0]
        if self.shift:
            log_prob = jnp.where(targets == 0, self.shift, log_prob)
        return log_prob, jnp.zeros_like(log_prob)


def test_words_of_probability_0_agree_with_themselves_alone():
    check(Masked())
    with pytest.raises(UserError, match=r"gives -2\.0000 nats to a word .* gives -inf"):
        check(Masked(shift=-2.0))


def test_probabilities_that_do_not_sum_to_one_are_refused():
    with pytest.raises(
        UserError, match=r":Offset is not a distribution: .* sum to 1\.649, not to 1"
    ):
        check(Offset(log_prob_off=0.5, log_probs_off=0.5))


def test_methods_that_disagree_are_refused():
    with pytest.raises(UserError, match=":Offset contradicts itself: _log_prob_and_log_z gives "):
        check(Offset(log_prob_off=1.0))


def test_heads_of_zoo_and_heads_without_all_words_are_not_checked():
    @dataclasses.dataclass(frozen=True)
    class Scores(Offset):
        _log_probs = Head._log_probs

    check(Scores(log_prob_off=1.0))
    distributions.check(Softmax(), {}, {}, 7)


def test_a_head_within_another_is_checked():
    for wrap in (WithCache, lambda head: WithExpert(KnowledgeBase("facts.tsv"), head)):
        head = wrap(Offset(log_prob_off=1.0))
        inner = jax.tree.map(jnp.zeros_like, Offset().init(jax.random.key(1), 7, LEXICON))
        params = {"head": inner} if isinstance(head, WithExpert) else inner
        with pytest.raises(UserError, match=":Offset contradicts itself"):
            distributions.check(head, params, {"head": {}}, 7)


def test_a_model_is_checked_before_it_is_trained():
    model = LanguageModel(Lookup(5), LSTM(7), Offset(log_prob_off=0.5, log_probs_off=0.5))
    with pytest.raises(UserError, match=":Offset is not a distribution"):
        distributions.check_untrained(model, model.tables(LEXICON), LEXICON)
    decoder = SequenceToSequence(
        Lookup(5), LSTM(7), Offset(log_prob_off=1.0), attention=Bahdanau(3)
    )
    with pytest.raises(UserError, match=":Offset contradicts itself"):
        distributions.check_untrained(decoder, decoder.tables(LEXICON, LEXICON), LEXICON, LEXICON)


@dataclasses.dataclass(frozen=True)
class Wide(Softmax):
    """A softmax over one word more than the lexicon has."""

    def _init(self, key, hidden_size, lexicon):
        params = super()._init(key, hidden_size, lexicon)
        return jax.tree.map(lambda x: jnp.concatenate([x, x[:1]]), params)


def test_a_head_over_other_words_is_refused():
    model = LanguageModel(Lookup(5), LSTM(7), Wide())
    with pytest.raises(UserError, match=":Wide has 14 words, and the lexicon 13: make"):
        distributions.check_untrained(model, model.tables(LEXICON), LEXICON)
