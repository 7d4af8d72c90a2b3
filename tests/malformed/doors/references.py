"""References of n-best lists that are numbered, and of those that have names."""

from zoo.lab.evaluation.references import read_references


def _read_with_ids(*ids):
    def call(content, folder):
        path = folder / "refs"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        read_references(str(path), ids)

    return call


CALLS = {
    "references of 0, 1, 2": _read_with_ids("0", "1", "2"),
    "references of 007, 040": _read_with_ids("007", "040"),
    "references of u1, u2, u3": _read_with_ids("u1", "u2", "u3"),
    "references of u 1, u 2": _read_with_ids("u 1", "u 2"),
}
