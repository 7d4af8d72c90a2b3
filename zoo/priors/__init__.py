"""Priors: knowledge of words that a model has before training.

The examples begin with

    >>> import pathlib
    >>> import jax.numpy as jnp
    >>> import numpy as np
    >>> from zoo import priors
    >>> from zoo.data import Corpus, with_background
    >>> from zoo.lexicon import Lexicon, with_features
    >>> sentences = [["the", "cat", "sat"], ["the", "cat"]]
    >>> corpora, words = {"train": Corpus("a text", sentences)}, ("</s>", "the", "cat", "sat")
    >>> lexicon = Lexicon(words, np.array([2, 2, 2, 1]), boundary="</s>")
    >>> def after(background, lexicon, read):  # b(x | the words read) of each x, in per cent
    ...     tables, carry = background.tables(lexicon), background.initial_carry(1)
    ...     contexts, _ = background.apply(tables, jnp.array([lexicon.encode(read)]), carry)
    ...     of_words = 100 * jnp.exp(background.log_probs(tables, contexts)[0, -1])
    ...     return dict(zip(lexicon.words, of_words.round().astype(int).tolist()))
"""

from typing import TYPE_CHECKING

from zoo import lazy

if TYPE_CHECKING:
    from zoo.priors.arpa import Arpa
    from zoo.priors.contextual import ContextualBackground
    from zoo.priors.evidence import Evidence
    from zoo.priors.experts import Expert, KnowledgeBase, PrefixWords, RecentWords
    from zoo.priors.grammar import Grammar
    from zoo.priors.kneser_ney import NGram
    from zoo.priors.morphology import Morphology, SuffixGuesser
    from zoo.priors.prior import Background, FeaturePrior, Uniform, Unigram
    from zoo.priors.spelling_features import Affixes, LetterNgrams, Numbers, TopWords
    from zoo.priors.strings import DigitStrings, LetterStrings, StringClass
    from zoo.priors.tables import WordFunction, WordList, WordTable

# Imported at first use: most programs need few of them.
__getattr__, __dir__ = lazy.names(
    __name__,
    {
        "Affixes": "zoo.priors.spelling_features",
        "Arpa": "zoo.priors.arpa",
        "Background": "zoo.priors.prior",
        "ContextualBackground": "zoo.priors.contextual",
        "DigitStrings": "zoo.priors.strings",
        "Evidence": "zoo.priors.evidence",
        "Expert": "zoo.priors.experts",
        "FeaturePrior": "zoo.priors.prior",
        "Grammar": "zoo.priors.grammar",
        "KnowledgeBase": "zoo.priors.experts",
        "LetterNgrams": "zoo.priors.spelling_features",
        "LetterStrings": "zoo.priors.strings",
        "Morphology": "zoo.priors.morphology",
        "NGram": "zoo.priors.kneser_ney",
        "Numbers": "zoo.priors.spelling_features",
        "PrefixWords": "zoo.priors.experts",
        "RecentWords": "zoo.priors.experts",
        "StringClass": "zoo.priors.strings",
        "SuffixGuesser": "zoo.priors.morphology",
        "TopWords": "zoo.priors.spelling_features",
        "Uniform": "zoo.priors.prior",
        "Unigram": "zoo.priors.prior",
        "WordFunction": "zoo.priors.tables",
        "WordList": "zoo.priors.tables",
        "WordTable": "zoo.priors.tables",
    },
)

__all__ = [
    "Affixes",
    "Arpa",
    "Background",
    "ContextualBackground",
    "DigitStrings",
    "Evidence",
    "Expert",
    "FeaturePrior",
    "Grammar",
    "KnowledgeBase",
    "LetterNgrams",
    "LetterStrings",
    "Morphology",
    "NGram",
    "Numbers",
    "PrefixWords",
    "RecentWords",
    "StringClass",
    "SuffixGuesser",
    "TopWords",
    "Uniform",
    "Unigram",
    "WordFunction",
    "WordList",
    "WordTable",
]
