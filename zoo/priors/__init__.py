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
    from zoo.priors.evidence import Evidence
    from zoo.priors.experts import Expert, KnowledgeBase, PrefixWords, RecentWords
    from zoo.priors.grammar import Grammar
    from zoo.priors.kneser_ney import KneserNey
    from zoo.priors.morphology import Morphology, SuffixGuesser
    from zoo.priors.prior import Background, ContextualBackground, FeaturePrior, Uniform, Unigram
    from zoo.priors.spelling_features import Affixes, LetterNgrams, Numbers, TopWords
    from zoo.priors.strings import DigitStrings, LetterStrings, StringClass
    from zoo.priors.tables import WordFunction, WordList, WordTable

# Imported at first use: most programs need few of them.
__getattr__, __dir__ = lazy.names(
    __name__,
    {
        "zoo.priors.arpa": ("Arpa",),
        "zoo.priors.evidence": ("Evidence",),
        "zoo.priors.experts": ("Expert", "KnowledgeBase", "PrefixWords", "RecentWords"),
        "zoo.priors.grammar": ("Grammar",),
        "zoo.priors.kneser_ney": ("KneserNey",),
        "zoo.priors.morphology": ("Morphology", "SuffixGuesser"),
        "zoo.priors.prior": (
            "Background",
            "ContextualBackground",
            "FeaturePrior",
            "Uniform",
            "Unigram",
        ),
        "zoo.priors.spelling_features": ("Affixes", "LetterNgrams", "Numbers", "TopWords"),
        "zoo.priors.strings": ("DigitStrings", "LetterStrings", "StringClass"),
        "zoo.priors.tables": ("WordFunction", "WordList", "WordTable"),
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
    "KneserNey",
    "KnowledgeBase",
    "LetterNgrams",
    "LetterStrings",
    "Morphology",
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
