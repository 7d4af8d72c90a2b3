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
    from zoo.priors.backgrounds.contextual import ContextualBackground
    from zoo.priors.backgrounds.evidence import Evidence
    from zoo.priors.backgrounds.strings import DigitStrings, LetterStrings, StringClass
    from zoo.priors.backgrounds.unigram import Uniform, Unigram
    from zoo.priors.experts.copied_words import PrefixWords, RecentWords
    from zoo.priors.experts.expert import Expert, KnowledgeBase
    from zoo.priors.features.affixes import Affixes, LetterNgrams
    from zoo.priors.features.morphology import Morphology
    from zoo.priors.features.numbers import Numbers
    from zoo.priors.features.suffix_guesser import SuffixGuesser
    from zoo.priors.features.top_words import TopWords
    from zoo.priors.features.word_function import WordFunction
    from zoo.priors.features.word_list import WordList
    from zoo.priors.features.word_table import WordTable
    from zoo.priors.grammars.background import Grammar
    from zoo.priors.ngrams.arpa import Arpa
    from zoo.priors.ngrams.kneser_ney import NGram
    from zoo.priors.prior import Background, FeaturePrior

# Imported at first use: most programs need few of them.
__getattr__, __dir__ = lazy.names(
    __name__,
    {
        "Affixes": "zoo.priors.features.affixes",
        "Arpa": "zoo.priors.ngrams.arpa",
        "Background": "zoo.priors.prior",
        "ContextualBackground": "zoo.priors.backgrounds.contextual",
        "DigitStrings": "zoo.priors.backgrounds.strings",
        "Evidence": "zoo.priors.backgrounds.evidence",
        "Expert": "zoo.priors.experts.expert",
        "FeaturePrior": "zoo.priors.prior",
        "Grammar": "zoo.priors.grammars.background",
        "KnowledgeBase": "zoo.priors.experts.expert",
        "LetterNgrams": "zoo.priors.features.affixes",
        "LetterStrings": "zoo.priors.backgrounds.strings",
        "Morphology": "zoo.priors.features.morphology",
        "NGram": "zoo.priors.ngrams.kneser_ney",
        "Numbers": "zoo.priors.features.numbers",
        "PrefixWords": "zoo.priors.experts.copied_words",
        "RecentWords": "zoo.priors.experts.copied_words",
        "StringClass": "zoo.priors.backgrounds.strings",
        "SuffixGuesser": "zoo.priors.features.suffix_guesser",
        "TopWords": "zoo.priors.features.top_words",
        "Uniform": "zoo.priors.backgrounds.unigram",
        "Unigram": "zoo.priors.backgrounds.unigram",
        "WordFunction": "zoo.priors.features.word_function",
        "WordList": "zoo.priors.features.word_list",
        "WordTable": "zoo.priors.features.word_table",
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
