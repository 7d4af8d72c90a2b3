"""Links between the words of a sentence pair from a translator's attention."""

import numpy as np

Link = tuple[int, int]


def in_sentence_order(
    weights: np.ndarray, source_words: int, target_words: int, order: str
) -> np.ndarray:
    """Puts the attention weights of one pair in the order of the words of the two sentences.

    A decoder's weights have a row for each predicted word in the order of prediction, and then
    perhaps the boundary and padding. Their columns are padded on the left, and in the order in
    which the encoder reads.

    Args:
      weights: [at least T, at least S], as `SequenceToSequence.attention_weights` gives them.
      source_words: S, without the boundary.
      target_words: T, without the boundary.
      order: see `SequenceToSequence`: "source_reversed" reverses columns, "target_reversed" rows.

    Returns:
      [T, S].

    Raises:
      ValueError: the weights have fewer rows or columns than the sentences have words.

    Example:
      >>> weights = np.array([[0, 0.1, 0.9], [0, 0.8, 0.2], [0, 0.5, 0.5]])  # 1 of padding
      >>> alignment.in_sentence_order(weights, 2, 2, "source_reversed").tolist()
      [[0.9, 0.1], [0.2, 0.8]]
    """
    weights = np.asarray(weights)
    rows, columns = weights.shape
    if rows < target_words or columns < source_words:
        raise ValueError(
            f"weights of shape {weights.shape} for {target_words} target and {source_words} source "
            "words: give a row and a column for each"
        )
    in_order = weights[:target_words, columns - source_words :]
    if order == "source_reversed":
        in_order = in_order[:, ::-1]
    return in_order[::-1] if order == "target_reversed" else in_order


def most_attended(weights: np.ndarray) -> list[Link]:
    """Links each target word to the source word with its largest attention weight.

    Among equal weights the earlier source word is taken.

    Args:
      weights: [T, S], in the order of the words of the sentences.

    Returns:
      (source position, target position) for each target word.

    Example:
      >>> alignment.most_attended(np.array([[0.9, 0.1], [0.2, 0.8], [0.7, 0.3]]))  # [T, S]
      [(0, 0), (1, 1), (0, 2)]
    """
    return [(int(row.argmax()), position) for position, row in enumerate(np.asarray(weights))]
