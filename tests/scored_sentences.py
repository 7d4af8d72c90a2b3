"""The sentences of a file and their scores, as `python -m zoo score` reads and computes them."""

from zoo.lab.evaluation import score_stream, sentence_scores
from zoo.lab.evaluation.evaluation_texts import Reading
from zoo.lab.evaluation.sentence_scores import PLAIN, Sentences, SentenceScores


def read(path: str, reading: Reading = PLAIN, **form) -> Sentences:
    """Reads all sentences of an n-best list, or of a column of a table.

    Args:
      path: the file.
      reading: how tokens are read.
      **form: nbest or column, see `sentence_scores.rows`.
    """
    rows = sentence_scores.rows(path, reading, **form)
    return Sentences.from_rows([*rows], form.get("nbest", False))


def scored(run, path: str, nbest: bool = False) -> tuple[Sentences, SentenceScores]:
    """Scores a short file under a run.

    Args:
      run: of a language model.
      path: the file.
      nbest: whether it has n-best lists.
    """
    (sentences,) = score_stream.chunks(run, path, nbest)
    return sentences, sentence_scores.score(run, sentences.words, path)
