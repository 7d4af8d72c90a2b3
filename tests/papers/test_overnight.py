"""Examples of SEMPRE as pairs of a question and a formula."""

import pytest

from zoo.errors import UserError
from zoo.papers import Overnight

EXAMPLES = """(example
  (utterance "what (if any) is at noon")
  (original "x")
  (targetFormula
    (call pack.age.listValue (call pack.age.filter en.meeting (string =) (time 12 0)))
  )
)
(example (utterance "who") (targetFormula en.person))
"""


def source(folder, text, **options):
    path = folder / "some.examples"
    path.write_text(text, encoding="utf-8")
    path = str(path)
    return Overnight(f"{path}[:1]", f"{path}[1:]", (path,), package="pack.age.", **options)


def test_a_formula_is_a_sequence_of_symbols_and_parentheses(tmp_path):
    found = source(tmp_path, EXAMPLES)
    question = ["what", "(if", "any)", "is", "at", "noon", "|||"]
    formula = "( call listValue ( call filter en.meeting ( string = ) ( time 12 0 ) ) )"
    assert found.read("train").sentences == [[*question, *formula.split()]]
    assert found.read("train").prefixes == [7]
    assert found.read("validation").sentences == [["who", "|||", "en.person"]]
    assert len(found.read("test").sentences) == 2
    assert found.splits() == ("train", "validation", "test")


BAD = {
    "(example (utterance who) (targetFormula x))\n(a)": "expression 2 is not an example",
    '(example (utterance "who"))': "expression 1 is not an example",
    '(example (utterance "who") (targetFormula (x))': "a \\( is never closed",
    '(example (utterance "who")\n(targetFormula (x))))': "line 2: there is a \\) too many",
    '(example (utterance "who |||") (targetFormula x))': "example 1: the separator .* is in",
}


@pytest.mark.parametrize("text", BAD)
def test_bad_files_are_named(tmp_path, text):
    with pytest.raises(UserError, match=rf"some\.examples.*{BAD[text]}"):
        source(tmp_path, text).read("test")
