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
        ({"epoch": 1.0}, "1.0 as 'epoch', which is not a whole number from 0"),
        ({"epoch": True}, "True as 'epoch', which is not a whole number from 0"),
        ({"index": -1}, "-1 as 'index', which is not a whole number from 0"),
        ({"best": "3"}, "'3' as 'best', which is not a number"),
        ({"best": None}, "None as 'best', which is not a number"),
        ({"finished": 1}, "1 as 'finished', which is not true or false"),
        ({"data": 3}, "3 as 'data', which is not text"),
        ({"words": 3}, "the key 'words', which this version does not know"),
    ],
)
def test_a_changed_key_is_named(changed, said):
    with pytest.raises(UserError, match=f"^{WHERE} has {said}: put back a copy"):
        Progress.of(KEPT | changed, WHERE)


def test_a_key_that_is_missing_is_named():
    kept = {name: value for name, value in KEPT.items() if name != "best_step"}
    with pytest.raises(UserError, match="metadata has no key 'best_step'"):
        Progress.of(kept, WHERE)
