"""Tables and lines that fit a terminal of 120 columns."""

from zoo.runs import output_files

NAMES = (["run", "head"], [["a", "Softmax"], ["longer", "NCE"]])


def block(name, width):
    return [name], [["1" * width], ["2"]]


def test_blocks_that_fit_are_one_table():
    (one,) = output_files.tables_beside([NAMES, block("x", 3), block("y", 1)])
    assert one == ["run     head       x  y", "a       Softmax  111  1", "longer  NCE        2  2"]


def test_other_blocks_follow_below_the_names():
    first, second = output_files.tables_beside(
        [NAMES, block("x", 90), block("y", 40), block("z", 60)]
    )
    assert first[0].split() == ["run", "head", "x"]
    assert [line.split()[0] for line in second] == ["run", "a", "longer"]
    assert second[0].split() == ["run", "y", "z"]
    assert max(map(len, first + second)) <= output_files.WIDTH


def test_long_lines_break_between_words_under_their_indent():
    line = "  note: " + "word " * 40
    found = [*output_files.wrapped([line, "short"])]
    assert " ".join(found[:-1]).split() == line.split() and found[-1] == "short"
    assert max(map(len, found)) <= output_files.WIDTH
    assert found[0].startswith("  note") and found[1].startswith("      word")
