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
    >>> def predict(background, lexicon, context):  # b(x | context) of each x, in per cent
    ...     tables, carry = background.tables(lexicon), background.initial_carry(1)
    ...     contexts, _ = background.apply(tables, jnp.array([lexicon.encode(context)]), carry)
    ...     percent = 100 * jnp.exp(background.log_probs(tables, contexts)[0, -1])
    ...     return dict(zip(lexicon.words, percent.round().astype(int).tolist()))
"""

from typing import TYPE_CHECKING

from zoo.base import lazy

if TYPE_CHECKING:
    from zoo.priors.arpa import Arpa as Arpa
    from zoo.priors.evidence import Evidence as Evidence
    from zoo.priors.experts import Expert as Expert
    from zoo.priors.experts import KnowledgeBase as KnowledgeBase
    from zoo.priors.experts import PrefixWords as PrefixWords
    from zoo.priors.experts import RecentWords as RecentWords
    from zoo.priors.grammar import Grammar as Grammar
    from zoo.priors.kneser_ney import KneserNey as KneserNey
    from zoo.priors.morphology import Morphology as Morphology
    from zoo.priors.morphology import SuffixGuesser as SuffixGuesser
    from zoo.priors.prior import Background as Background
    from zoo.priors.prior import ContextualBackground as ContextualBackground
    from zoo.priors.prior import FeaturePrior as FeaturePrior
    from zoo.priors.prior import Uniform as Uniform
    from zoo.priors.prior import Unigram as Unigram
    from zoo.priors.spelling_features import Affixes as Affixes
    from zoo.priors.spelling_features import LetterNgrams as LetterNgrams
    from zoo.priors.spelling_features import Numbers as Numbers
    from zoo.priors.spelling_features import TopWords as TopWords
    from zoo.priors.strings import DigitStrings as DigitStrings
    from zoo.priors.strings import LetterStrings as LetterStrings
    from zoo.priors.strings import StringClass as StringClass
    from zoo.priors.tables import WordFunction as WordFunction
    from zoo.priors.tables import WordList as WordList
    from zoo.priors.tables import WordTable as WordTable
else:  # imported at first use: most programs need few of them
    _NAMES = {
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
    }
    __getattr__, __dir__ = lazy.names(__name__, _NAMES)
    __all__ = sorted(name for names in _NAMES.values() for name in names)
