"""The sentences of a file and their scores, as `python -m zoo score` reads and computes them."""

from zoo.lab.evaluation import score_stream, sentence_scores
from zoo.lab.evaluation.sentence_scores import SentenceScores
from zoo.sources.tokens import PLAIN, Reading, Sentence


def read(path: str, reading: Reading = PLAIN, **form) -> list[Sentence]:
    """Reads all sentences of an n-best list, or of a column of a table.

    Args:
      path: the file.
      reading: how tokens are read.
      **form: nbest or column, see `score_stream.read_fields`.
    """
    return [*score_stream.read_fields(path, reading, **form)]


def scored(run, path: str, nbest: bool = False) -> tuple[list[Sentence], SentenceScores]:
    """Scores a short file under a run.

    Args:
      run: of a language model.
      path: the file.
      nbest: whether it has n-best lists.
    """
    sentences = [*score_stream.open_sentences(run, path, nbest).sentences]
    words = [sentence.words for sentence in sentences]
    return sentences, sentence_scores.score(run, words, path)
