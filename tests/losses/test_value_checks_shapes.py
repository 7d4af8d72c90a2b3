"""Wrong shapes at the door of the losses are errors that name the argument."""

import numpy as np
import pytest

from zoo import losses
from zoo.losses.value_checks import check_shapes

zeros = np.zeros


def test_shapes_that_agree_pass():
    check_shapes(a=(zeros((2, 3, 5)), "... D"), b=(zeros((7, 5)), "V D"), c=(zeros((2, 3)), "..."))
    check_shapes(a=(zeros(5), "... D"), c=(1.0, "..."), integers=())
    check_shapes(a=(np.arange(3), "N"), integers=("a",))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"a": (zeros((2, 5)), "... D"), "b": (zeros((7, 4)), "V D")},
            r"^b has the shape \(7, 4\), \[V, D\], but D is 5 in a$",
        ),
        (
            {"a": (zeros((2, 5)), "... D"), "b": (zeros(3), "...")},
            r"^b has the shape \(3,\), \[...\], but ... is \(2,\) in a$",
        ),
        ({"b": (zeros(7), "V D")}, r"^b has the shape \(7,\): give \[V, D\]$"),
        ({"b": (zeros(()), "... D")}, r"^b has the shape \(\): give \[..., D\]$"),
        ({"b": (zeros(2), "... M D")}, r"^b has the shape \(2,\): give \[..., M, D\]$"),
    ],
)
def test_shapes_that_do_not_agree_name_the_argument(arguments, message):
    with pytest.raises(ValueError, match=message):
        check_shapes(**arguments)


def test_targets_must_be_whole_numbers():
    with pytest.raises(TypeError, match=r"^targets is of the type float32: give whole numbers$"):
        check_shapes(targets=(np.zeros(3, np.float32), "N"), integers=("targets",))


@pytest.mark.parametrize("loss", ["nce_loss", "importance_loss", "blackout_loss"])
def test_sampled_losses_name_the_argument(loss):
    arguments = zeros(3), zeros((2, 4)), zeros(3), zeros((3, 4)), zeros((3, 4), bool)
    with pytest.raises(ValueError, match=r"^noise_logits has the shape \(2, 4\)"):
        getattr(losses, loss)(*arguments)
