"""The corpora that the results are about: their sizes, as the papers count them."""

import pytest

import configs
from zoo.configuration.overrides import apply_settings
from zoo.lab.evaluation.agreement import pairs_of, paradigms


@pytest.mark.realdata("ptb")
def test_penn_treebank():
    recipe = configs.load("ptb_small")
    lexicon, corpora = recipe.vocabulary.build(recipe.data)
    assert len(lexicon) == 10_000
    sizes = {
        name: len(recipe.vocabulary.encode(corpus, lexicon).words)
        for name, corpus in corpora.items()
    }
    assert sizes == {"train": 929_589, "validation": 73_760, "test": 82_430}


@pytest.mark.slow
@pytest.mark.realdata("ud_french")
def test_french_treebank():
    recipe = configs.load("llrnn_french")
    lexicon, corpora = recipe.vocabulary.build(recipe.data)
    sentences = {name: len(corpus.sentences) for name, corpus in corpora.items()}
    assert sentences == {"train": 13_826, "validation": 728, "test1": 298, "test2": 1_596}
    words = sum(len(s) for corpus in corpora.values() for s in corpus.sentences)
    assert words == 402_197
    assert len(lexicon) == 42_503 + 1
    _, signatures = lexicon.signatures
    assert len(signatures) == 2_908
    forms = paradigms(sentence for name in corpora for sentence in recipe.data.tokens(name))
    pairs = {
        name: len(pairs_of(recipe.data.tokens(name), forms, True)) for name in ("test1", "test2")
    }
    assert pairs == {"test1": 729, "test2": 4_089}


@pytest.mark.slow
@pytest.mark.realdata("ud_french")
def test_french_treebank_with_fused_forms_and_three_boundaries():
    """Near the 463,069 tokens of the paper, from which its way of counting is inferred."""
    settings = ["data.fused=kept", "vocabulary.boundary=counted", "vocabulary.boundary_marks=3"]
    recipe = apply_settings(configs.load("rnn_french"), settings)
    lexicon, corpora = recipe.vocabulary.build(recipe.data)
    encoded = (recipe.vocabulary.encode(corpus, lexicon) for corpus in corpora.values())
    assert sum(len(text.words) for text in encoded) == 462_637
