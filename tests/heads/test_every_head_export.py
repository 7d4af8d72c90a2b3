"""Programs of heads that are exported for any batch and length give what direct calls give."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

from tests import examples
from tests.heads import head_references, test_char_lstm
from tests.heads.test_every_head import HEADS, SIZE
from tests.priors import test_evidence, test_grammar, test_kneser_ney
from zoo import heads, priors
from zoo.base.arrays import row_blocks
from zoo.lexicon import Lexicon, with_features
from zoo.priors import backoff

TRAINING_LEXICON, NEW_LEXICON = examples.trained_and_other()


@dataclasses.dataclass(frozen=True)
class Case:
    """A head, and the words that it is for."""

    head: heads.Head
    lexicon: Lexicon


def _noisy(**options):
    return heads.NCE(samples=4, **options)


VARIANTS = {
    "dense sums": heads.LogLinear(form="dense_sums", penalty=0.1),
    "sparse sums": heads.LogLinear(form="sparse_sums", penalty=0.1, penalty_norm=1.0),
    "sparse product": heads.LogLinear(form="product", penalty=0.1),
    "smoothed": heads.Softmax(label_smoothing=0.1, z_loss=0.01),
    "noise by token": _noisy(noise_per="token"),
    "noise by batch row": _noisy(noise_per="row"),
    "distinct noise": heads.ImportanceSampling(samples=4, distinct=True),
    "noise of letters": heads.CNNSoftmax(
        head_references.NETWORK, sampled=_noisy(noise=heads.LetterNoise(order=2), noise_per="token")
    ),
}
SPELLER = test_char_lstm.HEAD
SPELT = {
    "letter by letter": SPELLER,
    "letter by letter, renormalised": dataclasses.replace(SPELLER, renormalised=True),
}


def facts(folder):
    """A head with an expert, which knows a fact of two words."""
    path = folder / "facts.tsv"
    path.write_text("subject\tword2\nword1\tword4\nword5\tword6\n", encoding="utf-8")
    words = tuple(f"word{number}" for number in range(13))
    lexicon = dataclasses.replace(examples.lexicon(), words=words)
    head = heads.WithExpert(priors.KnowledgeBase(str(path)), heads.LogLinear())
    return _with_background(head, lexicon)


def grammar(folder):
    """A head over the forms of a grammar."""
    background, lexicon = test_grammar.compiled(folder, *test_grammar.SUMS[::2])
    return Case(heads.LogLinear(background=background), lexicon)


def n_grams(folder):
    """A head over trigrams, some lists of which are dense rows, and some are not."""
    return Case(heads.LogLinear(background=priors.KneserNey(3)), test_kneser_ney.built(3)[0])


def evidence(folder):
    """A head over characters with evidence."""
    background = priors.Evidence(minimum_count=1, longest=20)
    head = heads.LogLinear(background=background)
    words = test_evidence.LEXICON
    training = {"train": test_evidence.encoded(test_evidence.TRAINING)}
    features = [{f"character {word}": 1.0} for word in range(len(words))]
    return _with_background(head, with_features(words, features), training)


def _with_background(head, lexicon, texts=None):
    tables = head.background.prepare(lexicon, texts or {})
    return Case(head, dataclasses.replace(lexicon, background_tables=tables))


CASES = {
    **{name: lambda _, c=case: Case(c.head, examples.lexicon()) for name, case in HEADS.items()},
    **{name: lambda _, h=head: Case(h, examples.lexicon()) for name, head in VARIANTS.items()},
    **{name: lambda _, h=head: Case(h, test_char_lstm.LEXICON) for name, head in SPELT.items()},
    "unknown words": lambda _: Case(
        heads.SpreadUnknown(heads.Softmax(), TRAINING_LEXICON), NEW_LEXICON
    ),
    "expert": facts,
    "grammar": grammar,
    "n-grams": n_grams,
    "evidence": evidence,
}


def operations(head):
    """All that a head computes, of (params, tables, hidden, targets, weights, before, key)."""

    def function(params, tables, hidden, targets, weights, before, key):
        inputs, context = (params, tables, hidden), context_of(head, tables, before)

        def weighted_loss(params, hidden, weights):
            columns = hidden, targets, weights
            return head.weighted_loss(params, tables, *columns, key=key, context=context)

        loss_and_gradients = jax.value_and_grad(weighted_loss, argnums=(0, 1, 2))
        return {
            "loss": head.loss(*inputs, targets, key=key, context=context),
            "weighted_loss": loss_and_gradients(params, hidden, weights),
            "log_prob_and_log_z": head.log_prob_and_log_z(*inputs, targets, context=context),
            "log_probs": head.log_probs(*inputs, context=context),
            "top_k": head.top_k(*inputs, 3, context=context),
        }

    return function


def context_of(head, tables, before):
    """What the head's background says of each position, if it has one."""
    if head.background is None:
        return None
    carry = head.background.initial_carry(before.shape[0])
    return head.background.apply(tables["background"], before, carry)[0]


def sampling(head):
    """Draws, of (params, tables, hidden, before, key)."""

    def function(params, tables, hidden, before, key):
        context = context_of(head, tables, before)
        return head.sample(params, tables, hidden, key, context=context)

    return function


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_any_batch_and_any_length(name, float64, monkeypatch, random, tmp_path):
    monkeypatch.setattr(row_blocks, "DEFAULT_ROWS", 4)  # so that there are several blocks
    monkeypatch.setattr(backoff, "WINDOWS", 3)
    case = CASES[name](tmp_path)
    head, words = case.head, len(case.lexicon)
    params = examples.random_params(head, random, SIZE, case.lexicon, scale=0.8)
    if head.tied:
        params["weights"] = jnp.asarray(random.normal(size=(words, SIZE)))
    tables = head.tables(case.lexicon)
    key = jax.random.key(1)
    function, sample = jax.jit(operations(head)), jax.jit(sampling(head))
    sizes = export.symbolic_shape("batch, time")

    def like(tree):
        return jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), tree)

    def any_size(dtype, *shape):
        return jax.ShapeDtypeStruct((*sizes, *shape), dtype)

    common, states, ids = like((params, tables)), any_size(jnp.float64, SIZE), any_size(jnp.int32)
    exported = export.export(function)(*common, states, ids, any_size(jnp.float64), ids, like(key))
    drawing = export.export(sample)(*common, states, ids, like(key))
    for shape in ((1, 3), (5, 2)):
        hidden = jnp.asarray(random.normal(size=(*shape, SIZE)))
        targets, before = jnp.asarray(random.integers(0, words, (2, *shape)), jnp.int32)
        arguments = hidden, targets, jnp.asarray(random.uniform(size=shape)), before
        actual = exported.call(params, tables, *arguments, key)
        expected = function(params, tables, *arguments, key)
        assert jax.tree.structure(actual) == jax.tree.structure(expected)
        for leaf, expected_leaf in zip(
            jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True
        ):
            np.testing.assert_allclose(leaf, expected_leaf, rtol=1e-9, atol=1e-11)
        # Blocks draw other words than no blocks: of those that are sure, the same.
        samples = drawing.call(params, tables, 1e3 * hidden, before, key)
        assert samples.shape == shape and samples.dtype == jnp.int32
        context = context_of(head, tables, before)
        log_probs, best = head.top_k(params, tables, 1e3 * hidden, 1, context=context)
        is_certain = np.asarray(log_probs[..., 0] > -1e-9)
        np.testing.assert_array_equal(samples[is_certain], best[..., 0][is_certain])
