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
    from zoo.priors.affixes import Affixes, LetterNgrams
    from zoo.priors.contextual import ContextualBackground
    from zoo.priors.evidence import Evidence
    from zoo.priors.expert import Expert, KnowledgeBase
    from zoo.priors.grammars.background import Grammar
    from zoo.priors.guesser import SuffixGuesser
    from zoo.priors.morphology import Morphology
    from zoo.priors.ngrams.arpa import Arpa
    from zoo.priors.ngrams.kneser_ney import NGram
    from zoo.priors.numbers import Numbers
    from zoo.priors.prior import Background, FeaturePrior
    from zoo.priors.strings import DigitStrings, LetterStrings, StringClass
    from zoo.priors.top_words import TopWords
    from zoo.priors.unigram import Uniform, Unigram
    from zoo.priors.word_function import WordFunction
    from zoo.priors.word_list import WordList
    from zoo.priors.word_table import WordTable
    from zoo.priors.words_before import PrefixWords, RecentWords

# Imported at first use: most programs need few of them.
__getattr__, __dir__ = lazy.names(
    __name__,
    {
        "Affixes": "zoo.priors.affixes",
        "Arpa": "zoo.priors.ngrams.arpa",
        "Background": "zoo.priors.prior",
        "ContextualBackground": "zoo.priors.contextual",
        "DigitStrings": "zoo.priors.strings",
        "Evidence": "zoo.priors.evidence",
        "Expert": "zoo.priors.expert",
        "FeaturePrior": "zoo.priors.prior",
        "Grammar": "zoo.priors.grammars.background",
        "KnowledgeBase": "zoo.priors.expert",
        "LetterNgrams": "zoo.priors.affixes",
        "LetterStrings": "zoo.priors.strings",
        "Morphology": "zoo.priors.morphology",
        "NGram": "zoo.priors.ngrams.kneser_ney",
        "Numbers": "zoo.priors.numbers",
        "PrefixWords": "zoo.priors.words_before",
        "RecentWords": "zoo.priors.words_before",
        "StringClass": "zoo.priors.strings",
        "SuffixGuesser": "zoo.priors.guesser",
        "TopWords": "zoo.priors.top_words",
        "Uniform": "zoo.priors.unigram",
        "Unigram": "zoo.priors.unigram",
        "WordFunction": "zoo.priors.word_function",
        "WordList": "zoo.priors.word_list",
        "WordTable": "zoo.priors.word_table",
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
