"""lm_1b has log p by its program's equations, computed by numpy in float64."""

import jax
import numpy as np
import pytest

from tests.interop import tensorflow_programs, tensorflow_writer
from tests.interop.tensorflow_programs import CELLS, EMBEDDING, ROWS, STATE, WORDS
from zoo.errors import UserError
from zoo.interop import lm_1b, tensorflow_files
from zoo.lexicon import Lexicon

TEXT = ["the", "\u017elu\u0165ou\u010dk\u00fd", "cat", "x" * 47, "x" * 60, "<UNK>", "x" * 48, "."]


@pytest.fixture
def arrays(random):
    return tensorflow_programs.draw_model(random)


def test_log_probs_are_the_programs(tmp_path, arrays):
    names = sorted(arrays)
    for number in range(3):
        part = {name: arrays[name] for name in names[number::3]}
        tensorflow_writer.save(tmp_path / f"ckpt-{number}", part)
    (tmp_path / "vocabulary").write_text("\n".join(WORDS) + "\n")
    model, params = lm_1b.language_model(tensorflow_files.read_folder(tmp_path))
    assert (model.embedding.size, model.core.size, model.core.projection) == (
        EMBEDDING,
        CELLS,
        STATE,
    )
    assert all(x.flags.c_contiguous and x.flags.aligned for x in params.values())
    words = lm_1b.read_words(tmp_path / "vocabulary", ROWS)
    counts = np.zeros(ROWS, np.int64)
    lexicon = Lexicon(tuple(words), counts, unknown="<UNK>", boundary="</S>")
    shapes = jax.eval_shape(lambda: model.init(jax.random.key(0), lexicon))
    leaves = [
        params.pop(jax.tree_util.keystr(path, simple=True, separator="/"))
        for path, _ in jax.tree_util.tree_leaves_with_path(shapes)
    ]
    assert not params
    tree = jax.tree.unflatten(jax.tree.structure(shapes), leaves)
    ids = np.array([[lexicon.ids[word] for word in ("</S>", *TEXT)]])

    @jax.jit
    def scores(tree):
        tables = model.evaluation_tables(lexicon)
        hidden, *_ = model.states(tree, tables, ids, model.initial_carry(1))
        return model.head.log_probs(model.head_params(tree), tables["head"], hidden)[0]

    expected = tensorflow_programs.log_probs(arrays, [None, *TEXT])
    assert np.ptp(expected, axis=0).min() > 0.01
    np.testing.assert_allclose(scores(tree), expected, rtol=1e-6, atol=3e-6)


@pytest.mark.parametrize(
    "name",
    [
        *("char_embedding/W", "char_embedding/cnn_0/b", "char_embedding/dense_1/gate/b"),
        *("char_embedding/dense_0/tr/W_0", "char_embedding/proj/W_0", "lstm/lstm_0/B"),
        *("lstm/lstm_0/W_0", "lstm/lstm_1/W_P_0", "lstm/lstm_1/W_O_diag", "softmax/W_0"),
        "softmax/b",
    ],
)
def test_a_file_that_is_missing_is_told(arrays, name):
    del arrays[name]
    with pytest.raises(UserError, match=f"it has no '{name}': give the folder of all files"):
        lm_1b.language_model(arrays)


@pytest.mark.parametrize("name", ["char_embedding/cnn_5/kernel", "softmax/W_9"])
def test_a_part_after_a_gap_is_refused(arrays, name):
    arrays[name] = arrays["softmax/b"]
    with pytest.raises(UserError, match=f"it has '{name}': give the files of lm_1b"):
        lm_1b.language_model(arrays)


def test_what_is_no_part_of_the_model_stays(arrays):
    arrays["other/state"] = arrays["softmax/b"]
    lm_1b.language_model(arrays)
    assert [*arrays] == ["other/state"]


def test_words_have_the_rows_of_their_lines(tmp_path):
    """As the program reads them: of a word on two lines, the last line; nothing of white space."""
    path = tmp_path / "vocabulary"
    path.write_text("a\n!!!MAXTERMID\nb \n\n\u00a0\na\nc\n")
    words = ["<row 0>", "b", "<row 2>", "\u00a0", "a", "c", "<row 6>", "<row 7>"]
    assert lm_1b.read_words(path, 8) == words
    assert lm_1b.read_words(path, 3) == words[:6]
