"""A change of what users write, call or read is seen in public_names.txt."""

from tests.repository import public_names


def test_public_names_are_those_of_the_file():
    names = public_names.text()
    assert names == public_names.FILE.read_text(encoding="utf-8"), (
        "public names differ: run python -m tests.repository.public_names and look at the diff"
    )
    assert (
        "  NCE(" in names and "    --surprisal" not in names and "  PerplexityPassport: " in names
    )
