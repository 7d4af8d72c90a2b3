"""N-best lists: files of each form, with costs beside them, merged, and re-ranked by weights."""

from zoo.lab.evaluation import nbest
from zoo.lab.rescoring import reranking
from zoo.lab.rescoring.reranking import Weights


def _write(content, folder, name):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)


def _read(sparse=False):
    def call(content, folder):
        for _ in nbest.read_lists(_write(content, folder, "lists"), sparse=sparse)[1]:
            pass

    return call


def _with_costs(contents, folder):
    """Lists, and a file of costs."""
    lists, costs = contents
    found = nbest.read_lists(_write(lists, folder, "lists"), {"lm": _write(costs, folder, "costs")})
    for _ in found[1]:
        pass


def _merged(contents, folder):
    """The lists of two systems, for the same sentences."""
    one, other = (
        nbest.read_lists(_write(content, folder, name))[1]
        for content, name in zip(contents, ("first", "second"), strict=True)
    )
    for _ in reranking.merge_lists(one, [other], best=1):
        pass


def _applied(contents, folder):
    """Lists and a file of weights."""
    lists, weights = contents
    read = Weights.read(_write(weights, folder, "weights"))
    form, found = nbest.read_lists(_write(lists, folder, "lists"))
    for _ in reranking.format_lists(reranking.reorder(found, read, "lists"), form):
        pass


CALLS = {
    "lists": _read(),
    "sparse lists": _read(sparse=True),
    "lists with costs": _with_costs,
    "lists of two systems": _merged,
    "lists with weights": _applied,
}
