"""A dictionary of words learnt from aligned pairs (Luong et al. 2015, section 3)."""

import collections
from collections.abc import Iterable, Mapping, Sequence

Link = tuple[int, int]


def learn_dictionary(
    sources: Iterable[Sequence[str]],
    targets: Iterable[Sequence[str]],
    alignments: Iterable[Iterable[Link]],
    least: int = 1,
) -> dict[str, str]:
    """Learns the target word with which each source word is linked most often.

    Among equally frequent target words the one with fewer links in total is taken, and then the
    first in the order of code points, so that the order of the pairs does not matter.

    Args:
      sources: sentences of words.
      targets: as many sentences of words.
      alignments: as many lists of links (i, j).
      least: the least number of links between a source word and its translation.

    Returns:
      {source word: target word}.

    Raises:
      ValueError: the numbers of sentences or alignments differ.

    Example:
      >>> alignment.learn_dictionary([source], [target], [links])
      {'Metz': 'Metz', 'in': 'de', 'portico': 'portique', 'the': 'le'}
    """
    counts: collections.Counter = collections.Counter()
    for source, target, links in zip(sources, targets, alignments, strict=True):
        counts.update((source[i], target[j]) for i, j in links)
    of_target: collections.Counter = collections.Counter()
    for (_, target_word), count in counts.items():
        of_target[target_word] += count
    best: dict[str, tuple[int, int, str]] = {}
    for (source_word, target_word), count in counts.items():
        rank = (-count, of_target[target_word], target_word)
        if count >= least and (source_word not in best or rank < best[source_word]):
            best[source_word] = rank
    return {word: best[word][2] for word in sorted(best)}


def translate_word(word: str, dictionary: Mapping[str, str]) -> str:
    """Returns the dictionary's translation, or the word itself: names and numbers are copied.

    Args:
      word: a source word.
      dictionary: {source word: target word}.

    Example:
      >>> [alignment.translate_word(word, dictionary) for word in ("portico", "Metz")]
      ['portique', 'Metz']
    """
    return dictionary.get(word, word)
