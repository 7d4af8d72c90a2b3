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
    lists_with_costs = nbest.read_lists(
        _write(lists, folder, "lists"), {"lm": _write(costs, folder, "costs")}
    )
    for _ in lists_with_costs[1]:
        pass


def _merged(contents, folder):
    """The lists of two systems, for the same sentences."""
    first_lists, second_lists = (
        nbest.read_lists(_write(content, folder, name))[1]
        for content, name in zip(contents, ("first", "second"), strict=True)
    )
    for _ in reranking.merge_lists(first_lists, [second_lists], best=1):
        pass


def _applied(contents, folder):
    """Lists and a file of weights."""
    lists, weights = contents
    parsed_weights = Weights.read(_write(weights, folder, "weights"))
    form, nbest_lists = nbest.read_lists(_write(lists, folder, "lists"))
    for _ in reranking.format_lists(reranking.reorder(nbest_lists, parsed_weights, "lists"), form):
        pass


CALLS = {
    "lists": _read(),
    "sparse lists": _read(sparse=True),
    "lists with costs": _with_costs,
    "lists of two systems": _merged,
    "lists with weights": _applied,
}
