"""What a checkpoint says of how far a run is, as it may have been changed by hand."""

import dataclasses
import math
import pathlib

import pytest

from zoo.errors import UserError
from zoo.training.loop import Progress

WHERE = pathlib.Path("run/checkpoints/last/3/progress/metadata")
KEPT = dataclasses.asdict(Progress(epoch=2, best=3.5, best_step=7, data="hash"))


def test_what_was_kept_is_read():
    assert Progress.of(KEPT, WHERE) == Progress(epoch=2, best=3.5, best_step=7, data="hash")
    assert Progress.of(KEPT | {"best": math.inf, "loss": 3}, WHERE).best == math.inf


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"epoch": 1.0}, "epoch is 1.0, where a whole number should be"),
        ({"epoch": True}, "epoch is true, where a whole number should be"),
        ({"index": -1}, "index is -1, where a whole number from 0 should be"),
        ({"best": "3"}, 'best is "3", where a number should be'),
        ({"best": None}, "best is missing or null, where a number should be"),
        ({"finished": 1}, "finished is 1, where true or false should be"),
        ({"data": 3}, "data is 3, where text should be"),
        ({"validations": [1.0, "x"]}, 'validations.1 is "x", where a number should be'),
        ({"words": 3}, "words is a key that this version does not know"),
    ],
)
def test_a_changed_key_is_named(changed, said):
    said = rf"^{WHERE} is not as it was written \({said}\): put back a copy"
    with pytest.raises(UserError, match=said):
        Progress.of(KEPT | changed, WHERE)


def test_a_key_that_is_missing_is_named():
    kept = {name: value for name, value in KEPT.items() if name != "best_step"}
    with pytest.raises(UserError, match=r"\(best_step is missing or null, where"):
        Progress.of(kept, WHERE)
