"""Numbers in the fields of components are checked in Python as in configs."""

import re

import numpy as np
import pytest

from zoo import Training, heads, priors
from zoo.errors import UserError


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (
            lambda: heads.NCE(samples="100"),
            "samples of NCE is '100', of type str: give a whole number.",
        ),
        (
            lambda: heads.NCE(samples=10.5),
            "samples of NCE is 10.5, of type float: give a whole number.",
        ),
        (
            lambda: heads.NCE(samples=True),
            "samples of NCE is True, of type bool: give a whole number.",
        ),
        (
            lambda: heads.LogLinear(penalty="x"),
            "penalty of LogLinear is 'x', of type str: give a number.",
        ),
        (lambda: Training(epochs=2.5), "training.epochs is 2.5, of type float: give a whole"),
        (lambda: priors.TopWords(True), "priors.TopWords.count is True, of type bool: give a"),
    ],
)
def test_a_field_that_is_no_number_is_named(make, told):
    with pytest.raises(UserError, match=re.escape(told)):
        make()


def test_numbers_of_numpy_are_numbers():
    assert heads.LogLinear(penalty=np.float32(0.5)).penalty == 0.5
    assert heads.NCE(samples=np.int64(3)).samples == 3
