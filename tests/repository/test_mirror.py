"""The tests mirror zoo/, so that a module's test is found by the module's path."""

import pathlib

import pytest

from tests.repository.test_size import executable_lines

ROOT = pathlib.Path(__file__).parents[2]
MOST_LINES = 60
# {module of more lines without a test of its name: the test that covers it}
COVERED = {
    "zoo/base/trust/user_modules.py": "tests/base/trust/test_permissions.py",
    "zoo/data/encoded_text.py": "tests/sources/test_mapped_text.py",
    "zoo/experiment.py": "tests/configuration/test_overrides.py",
    "zoo/interop/operations.py": "tests/interop/test_linen.py",
    "zoo/lab/commands/corpora.py": "tests/sources/test_fetch.py",
    "zoo/lab/comparison/plot_style.py": "tests/lab/comparison/test_bar_plots.py",
    "zoo/lab/comparison/translations.py": "tests/lab/comparison/test_bar_plots.py",
    "zoo/lab/evaluation/changes/constraint.py": "tests/lab/evaluation/test_exact_match.py",
    "zoo/lab/evaluation/figures.py": "tests/lab/comparison/test_comparison.py",
    "zoo/lab/evaluation/records.py": "tests/repository/test_records.py",
    "zoo/lab/evaluation/score_stream.py": "tests/lab/evaluation/test_sentence_scores.py",
    "zoo/lab/evaluation/scored_texts.py": "tests/lab/evaluation/test_passport.py",
    "zoo/lab/rescoring/lattices.py": "tests/lab/rescoring/test_lattice_rescoring.py",
    "zoo/lab/rescoring/reranking.py": "tests/lab/commands/test_rescore.py",
    "zoo/layers/embeddings.py": "tests/layers/test_every_embedding.py",
    "zoo/layers/gru.py": "tests/layers/test_every_core.py",
    "zoo/lexicon/feature_signatures.py": "tests/losses/test_log_linear.py",
    "zoo/losses/adaptive.py": "tests/heads/test_adaptive.py",
    "zoo/losses/hierarchical.py": "tests/heads/test_hierarchical.py",
    "zoo/losses/huffman.py": "tests/heads/test_hierarchical.py",
    "zoo/priors/backoff.py": "tests/priors/test_kneser_ney.py",
    "zoo/priors/grammar_rules.py": "tests/priors/test_grammar.py",
    "zoo/priors/strings.py": "tests/data/test_open_words.py",
    "zoo/sources/source.py": "tests/sources/test_mixed.py",
    "zoo/sources/table_rows.py": "tests/sources/test_text.py",
}


def relative(path: pathlib.Path) -> str:
    return path.relative_to(ROOT).as_posix()


def mirrored(path: pathlib.Path, folder: str) -> pathlib.Path:
    """The path in another folder of the root: tests/heads of zoo/heads."""
    return ROOT.joinpath(folder, *path.relative_to(ROOT).parts[1:])


def bears_name(test: pathlib.Path, module: str) -> bool:
    """Whether a file is called test_MODULE.py or test_MODULE_STORY.py."""
    return f"{test.stem}_".startswith(f"test_{module}_")


MODULES = [path for path in sorted(ROOT.glob("zoo/**/*.py")) if path.stem != "__init__"]
ROOMS = sorted({path.parent for path in MODULES} - {ROOT / "zoo"})


@pytest.mark.parametrize("room", ROOMS, ids=relative)
def test_tests_of_a_room_bear_the_names_of_its_modules(room):
    modules = [path.stem for path in MODULES if path.parent == room]
    tests = sorted(mirrored(room, "tests").glob("test_*.py"))
    assert tests, "each room has a folder of tests"
    strangers = {
        relative(test)
        for test in tests
        if not any(bears_name(test, name) for name in ["every", *modules])
    }
    assert not strangers, "call it test_MODULE.py, test_MODULE_STORY.py, test_every_STORY.py"


def test_a_large_module_has_a_test_of_its_name():
    untested = {
        relative(module)
        for module in MODULES
        if executable_lines(module) > MOST_LINES
        and not any(
            bears_name(test, module.stem)
            for test in mirrored(module.parent, "tests").glob("test_*.py")
        )
    }
    assert untested == {*COVERED}, "add the test, or change the table of this file"


@pytest.mark.parametrize("test", sorted({*COVERED.values()}))
def test_the_test_that_covers_a_module_exists(test):
    assert (ROOT / test).is_file()


def test_names_are_those_of_a_module_or_begin_with_it():
    assert bears_name(pathlib.Path("test_softmax.py"), "softmax")
    assert bears_name(pathlib.Path("test_softmax_padding.py"), "softmax")
    assert not bears_name(pathlib.Path("test_softmaxes.py"), "softmax")
    assert not bears_name(pathlib.Path("test_soft.py"), "softmax")
