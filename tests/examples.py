"""Small things that many tests use."""

import doctest

import jax
import jax.numpy as jnp
import numpy as np

from tests import references
from zoo.lexicon import Lexicon, with_features

# An odd number of words. Some share their features, one has none; "name" features belong to one
# word, "twins" to two words of one signature, "length" is a real number.
FEATURES = (
    {},
    {"tag a": 1.0, "name 1": 1.0},
    {"tag a": 1.0, "tag b": 1.0, "name 2": 1.0, "length": 0.7},
    {"tag b": 1.0},
    {"tag b": 1.0},
    {"tag a": 1.0, "tag b": 1.0},
    {"tag b": 1.0, "tag a": 1.0},
    {"tag a": 1.0, "length": 1.3},
    {"length": -0.4},
    {"name 9": 2.0, "another name 9": -1.0, "third name 9": 0.5},
    {"twins": 1.5},
    {"twins": 1.5},
    {"tag b": 2.0, "length": -0.4},
)


def plain_lexicon(size: int = 13) -> Lexicon:
    """Words without features."""
    words = tuple(f"word {place}" for place in range(size))
    return Lexicon(words=words, counts=np.arange(size, 0, -1))


def log_background(massless: tuple[int, ...] = ()) -> np.ndarray:
    """A distribution over thirteen words, no two alike, with no mass at `massless`."""
    background = np.random.default_rng(3).uniform(0.5, 2, len(FEATURES))
    background[list(massless)] = 0
    with np.errstate(divide="ignore"):
        return np.log(background / background.sum())


def lexicon(massless: tuple[int, ...] = ()) -> Lexicon:
    """Words with FEATURES and a background."""
    return with_features(plain_lexicon(), list(FEATURES), log_background(massless))


def randomised(tree, random, scale=1.0):
    """A tree of the same shapes with normal numbers, of whatever precision is the default."""
    return jax.tree.map(lambda x: jnp.asarray(scale * random.normal(size=x.shape)), tree)


def random_params(component, random, *arguments, scale=1.0):
    """Normal numbers in the shapes of init(key, *arguments), whose own are not computed."""
    shapes = jax.eval_shape(lambda key: component.init(key, *arguments), jax.random.key(0))
    return randomised(shapes, random, scale)


# The tables of a model whose components need to know nothing of the words.
NO_TABLES = {"embedding": {}, "head": {}}


def trained_and_other() -> tuple[Lexicon, Lexicon]:
    """Five words that a model was trained on, and eight others: its words but <unk>, marks of their
    own, in another order, and three new words, "x", "y" and "z"."""
    trained = Lexicon(
        words=("</s>", "<unk>", "b", "a", "c"),
        counts=np.array([9, 3, 2, 4, 1]),
        boundary="</s>",
        unknown="<unk>",
    )
    words = ("x", "a", "<s>", "b", "y", "?", "c", "z")
    larger = Lexicon(words=words, counts=np.zeros(8, np.int64), boundary="<s>", unknown="?")
    return trained, larger


def sentence_log_probs(run, sentences) -> np.ndarray:
    """log p of sentences by what `zoo.load` gives, float64 [n]."""
    return np.array([row.log_prob for row in run.score(sentences)])


def run_docstring(docstring: str, names: dict):
    """Runs the examples of a docstring in these names, which get its own; fails if there are
    none."""
    test = doctest.DocTestParser().get_doctest(docstring, names, "example", None, 0)
    report: list[str] = []
    failures, tried = doctest.DocTestRunner().run(test, out=report.append, clear_globs=False)
    names.update(test.globs)
    assert tried and not failures, "".join(report)


def finite_differences_of_tree(function, tree):
    """The gradient of function(tree), a number, by central differences, as a tree like it."""
    leaves, structure = jax.tree.flatten(tree)

    def call_on_leaves(arrays):
        return function(jax.tree.unflatten(structure, map(jnp.asarray, arrays.values())))

    gradients = references.finite_differences(call_on_leaves, dict(enumerate(leaves)))
    return jax.tree.unflatten(structure, gradients.values())
