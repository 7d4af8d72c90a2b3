"""Arrays of a mesh of devices, copied from the host to its devices and back.

The mesh may be of several processes, each of which has some devices, and the parts that lie there.
"""

import functools

import jax
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from zoo.runs import digests


def placed(array: np.ndarray, layout: NamedSharding) -> jax.Array:
    """A copy of an array of the host, each device's part in memory of its own, once it is there."""
    return jax.block_until_ready(put(array, layout))


def put(array, layout: NamedSharding, count: int | None = None, rows=slice(None)) -> jax.Array:
    """A copy of an array of the host, each device's part in memory of its own.

    Args:
      array: the same in every process; or some of its rows, those of this process.
      count: how many rows there are in all, if these are some.
      rows: which these are.
    """
    shape, first = array.shape, 0
    if count is not None:
        shape, first = (count, *shape[1:]), rows.start or 0
    copies = []
    for device, index in layout.addressable_devices_indices_map(shape).items():
        if index and first:
            index = (slice(index[0].start - first, index[0].stop - first), *index[1:])
        copies.append(jax.device_put(array[index], device, may_alias=False))
    return jax.make_array_from_single_device_arrays(shape, layout, copies)


def whole(array: jax.Array) -> np.ndarray:
    """An array of a mesh of several processes, on the host of each; all have to ask for it.

    Some rows at a time are sent to all devices.
    """
    if array.is_fully_replicated:
        return np.asarray(array.addressable_data(0))
    count = len(array)
    size = min(count, max(1, digests.BYTES_AT_A_TIME * count // array.nbytes))
    result = np.empty(array.shape, array.dtype)
    for start in range(0, count, size):
        start = min(start, count - size)  # one program for all
        result[start : start + size] = _some_rows(array, start, size).addressable_data(0)
    return result


def _some_rows(array: jax.Array, start: int, size: int) -> jax.Array:
    assert isinstance(array.sharding, NamedSharding)
    everywhere = NamedSharding(array.sharding.mesh, PartitionSpec())
    return _taking(everywhere, size)(array, start)


@functools.cache
def _taking(layout: NamedSharding, size: int):
    """The program of some rows of an array, from a number on."""

    def take(array, start):
        return jax.lax.dynamic_slice_in_dim(array, start, size)

    return jax.jit(take, out_shardings=layout)
