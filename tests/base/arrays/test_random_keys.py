"""Random keys of a batch: other uses have other draws, whichever rows a device has."""

import jax
import numpy as np

from zoo.base.arrays.random_keys import Keys, fold_in_rows


def test_uses_have_keys_of_their_own():
    keys = Keys.from_key(jax.random.key(0), 3)
    keys_by_use = [keys.fold_in(use) for use in (0, 1)]
    data = [
        jax.random.key_data(key)
        for use_keys in keys_by_use
        for key in (use_keys.batch, *use_keys.rows)
    ]
    assert len(np.unique(data, axis=0)) == 2 * (1 + 3)


def test_keys_of_a_row_do_not_depend_on_the_other_rows():
    rows = Keys.from_key(jax.random.key(0), 5).rows
    together = jax.random.key_data(fold_in_rows(rows, 7))
    part = jax.random.key_data(fold_in_rows(rows[3:], 7))
    np.testing.assert_array_equal(part, together[3:])
