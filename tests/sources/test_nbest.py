"""Lines of n-best lists are written as they are read."""

from tests import scored_sentences
from zoo.sources import nbest


def test_lines_have_four_fields():
    features = {"LogProb": -1.25, "Length": 3}
    line = nbest.line(0, ["le", "chat"], features, -0.41666666666)
    assert line == "0 ||| le chat ||| LogProb= -1.25 Length= 3 ||| -0.416666667"
    assert nbest.line("a", [], {}, float("-inf")) == "a |||  |||  ||| -inf"


def test_what_is_written_is_read(tmp_path):
    words = [["le", "chat"], [], ["a|||b", "|||"], ["|", "||"]]
    lines = [nbest.line(number // 2, one, {"N": 1}, -1) for number, one in enumerate(words)]
    assert all(len(nbest.fields(line)) == 4 for line in lines)
    path = tmp_path / "lists"
    path.write_text("\n".join(lines) + "\n")
    found = scored_sentences.read(str(path), nbest=True)
    bars = "&#124;" * 3
    assert found.words == [*words[:2], [f"a{bars}b", bars], ["|", "||"]]
    assert found.ids == ["0", "0", "1", "1"]
