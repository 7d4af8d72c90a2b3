"""A batch in pieces gives the update of the whole batch; with SGD, for Adam hides wrong scales."""

import pytest

from tests.training import small, test_model_parallel
from zoo.errors import UserError


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "devices", "model", "pieces"),
    [
        ("sampled", 1, 1, 2),
        pytest.param("softmax", 1, 1, 4, marks=pytest.mark.slow),
        pytest.param("softmax", 2, 1, 2, marks=pytest.mark.slow),
        pytest.param("log-linear", 4, 2, 2, marks=pytest.mark.slow),
    ],
)
def test_pieces_change_nothing_but_rounding(tmp_path, name, devices, model, pieces):
    whole = test_model_parallel.trained(tmp_path / "whole", 1, name, clip=0.1)
    in_pieces = test_model_parallel.trained(
        tmp_path / "pieces", devices, name, model, clip=0.1, accumulate=pieces
    )
    test_model_parallel.check_equal(in_pieces, whole)


@pytest.mark.parametrize(
    ("devices", "model", "training", "sentence"),
    [
        (1, 1, {"accumulate": 3}, "training.accumulate=3 does not divide the 4 rows of a device"),
        (2, 1, {"accumulate": 4}, "training.accumulate=4 does not divide the 2 rows"),
        (4, 2, {"accumulate": 4}, "training.accumulate=4 does not divide the 2 rows"),
        (1, 1, {"accumulate": 2, "row_sparse": True}, "training.accumulate=2 .*row_sparse=True"),
        (1, 1, {"accumulate": 0}, "training.accumulate is 0: give at least 1"),
    ],
)
def test_what_does_not_go_is_refused(tmp_path, devices, model, training, sentence):
    with pytest.raises(UserError, match=sentence):
        small.trainer(
            test_model_parallel.recipe_of("sampled", model, **training), tmp_path, devices
        )
