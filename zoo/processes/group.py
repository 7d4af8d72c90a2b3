"""The processes that train one run, as everything else knows them: one alone, or several."""

import contextlib
import dataclasses
import functools
import hashlib
import json
import pathlib
import signal
import socket
from collections.abc import Iterable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from zoo import strict_json, version
from zoo.errors import Interrupted, UserError
from zoo.processes import links, relay
from zoo.processes.detect import Place

# Seconds that processes wait for each other at the start, by default.
LIMIT = 300.0
# JAX's own limits, in seconds: `links` ends a process long before they do.
_HEARTBEAT, _SHUTDOWN = 600, 20
# In which it is known why another process has ended.
_NEWS = 5.0
# Numbers of 4 bytes that process 0 sends at a time.
_CHUNK = 2**24


@dataclasses.dataclass(frozen=True)
class Processes:
    """This process among those of a run.

    Attributes:
      index: its number, from 0. Process 0 alone writes.
      count: how many there are.
      coordinator: where process 0 is, HOST:PORT; "" for a single one.
      links: to the others; None for a single one.
    """

    index: int = 0
    count: int = 1
    coordinator: str = ""
    links: "links.Links | None" = dataclasses.field(default=None, repr=False, compare=False)

    @property
    def first(self) -> bool:
        """Whether this is process 0, which writes what is written."""
        return self.index == 0

    def exchange(self, text: str) -> list[str]:
        """What every process says at this point, in their order; UserError if one has left."""
        return self.links.exchange(text) if self.links else [text]

    def share(self, value: Any = None) -> Any:
        """The value that process 0 has, which JSON can hold, in every process; waits for it.

        Raises:
          UserError: a process has left instead.
        """
        if not self.links:
            return value
        said = self.exchange(json.dumps(value) if self.first else "")[0]
        return strict_json.loads(said, finite=False)  # a loss may be infinite

    def check_alike(self, **texts: str):
        """Compares what all processes must have in common, such as the recipe, by its hash.

        Args:
          **texts: {what it is, in a word: its text}.

        Raises:
          UserError: in every process, if one differs from process 0; names it.
        """
        hashes = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in texts.items()}
        first, *others = map(strict_json.loads, self.exchange(json.dumps(hashes)))
        for index, other in enumerate(others, 1):
            for name in first:
                if other.get(name) != first[name]:
                    raise UserError(
                        f"process {index} has another {name.replace('_', ' ')} than process 0 "
                        f"(sha256 {str(other.get(name))[:12]} and {first[name][:12]}): start all "
                        "processes with the same command on the same code and data."
                    )

    def begin_jax(self):
        """Initialises `jax.distributed`; before JAX knows its devices.

        Raises:
          UserError: JAX numbers the processes in another way, or finds more devices in some.
        """
        if not self.links:
            return
        host, _, _ = self.coordinator.rpartition(":")
        port = self.share(_free_port() if self.first else None)
        # SIGTERM is the trainer's.
        jax.config.update("jax_enable_preemption_service", False)
        jax.distributed.initialize(
            f"{host}:{port}" if self.first else relay.to(host, port),
            self.count,
            self.index,
            cluster_detection_method="deactivate",
            heartbeat_timeout_seconds=_HEARTBEAT,
            shutdown_timeout_seconds=_SHUTDOWN,
            coordinator_bind_address=f"127.0.0.1:{port}" if _is_local(host) else None,
        )
        if (jax.process_index(), jax.process_count()) != (self.index, self.count):
            raise UserError(
                f"this is process {self.index} of {self.count}, and {jax.process_index()} of "
                f"{jax.process_count()} by the devices that JAX finds: give each process of a "
                "slice the number of its host."
            )
        # JAX connects processes at the first collective, which some would wait for in vain.
        self._check_devices()
        multihost_utils.sync_global_devices("begun")

    def _check_devices(self):
        """UserError, in every process, where they do not all find as many devices."""
        counts = self.exchange(str(jax.local_device_count()))
        for index, count in enumerate(counts):
            if count != counts[0]:
                raise UserError(
                    f"process {index} finds {count} device(s) and process 0 finds {counts[0]}: let "
                    "every process see as many."
                )

    def from_first(self, leaves: Iterable, shapes: Iterable) -> Iterator:
        """The arrays of process 0, bit for bit, in every process, on the host, one by one.

        Args:
          leaves: of process 0; what others give is not looked at. Of each as it is sent alone.
          shapes: of all leaves.
        """
        if not self.links:
            yield from leaves
            return
        self.exchange("")
        leaves = iter(leaves)
        for shape in shapes:
            target = np.empty(shape.shape, shape.dtype)
            self._send(np.asarray(next(leaves)) if self.first else target, target)
            yield target
            del target  # before the next is made

    def _send(self, source: np.ndarray, target: np.ndarray):
        """Writes the `source` of process 0 to the `target` of every process."""
        if target.nbytes:
            numbers = _as_numbers(source)
            size = min(_CHUNK, 1 << (len(numbers) - 1).bit_length())  # few sizes: few programs
            for start in range(0, len(numbers), size):
                part = numbers[start : start + size]
                padded = np.zeros(size, np.uint32)
                padded[: len(part)] = part
                padded = np.asarray(multihost_utils.broadcast_one_to_all(padded))
                flat = target.reshape(-1).view(np.uint8)[4 * start : 4 * (start + size)]
                flat[:] = padded.view(np.uint8)[: len(flat)]

    def greatest(self, number: int) -> jax.Array:
        """The greatest of a number in every process, once the devices have computed it."""
        everywhere, greatest = _greatest()
        mine = np.full(jax.local_device_count(), number, np.int32)
        return greatest(jax.make_array_from_process_local_data(everywhere, mine))

    def gathered(self, tree):
        """Leaves [B / count, ...] of every process, on the host, as [B, ...] in all."""
        if not self.links or not jax.tree.leaves(tree):
            return tree
        return multihost_utils.process_allgather(tree, tiled=True)


ALONE = Processes()


@functools.cache
def _greatest():
    """(how a number a device lies, the program of their greatest)."""
    mesh = Mesh(np.array(jax.devices()), ("all",), axis_types=(AxisType.Auto,))
    whole = NamedSharding(mesh, PartitionSpec())
    return NamedSharding(mesh, PartitionSpec("all")), jax.jit(jnp.max, out_shardings=whole)


def _as_numbers(array: np.ndarray) -> np.ndarray:
    """The bytes of an array as uint32, filled up with zeros."""
    flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    if len(flat) % 4:
        flat = np.concatenate([flat, np.zeros(-len(flat) % 4, np.uint8)])
    return flat.view(np.uint32)


@contextlib.contextmanager
def met(place: Place | None, limit: float = LIMIT) -> Iterator[Processes]:
    """This process among the others; it leaves together with them.

    Args:
      place: of this process; None for a single one.
      limit: seconds to wait for the others.

    Raises:
      UserError: they cannot be reached, or do not come.
    """
    if place is None:
        yield ALONE
        return
    host, _, port = place.coordinator.rpartition(":")
    address = host, int(port)
    if place.index:
        connected = links.connect(address, place.index, place.count, limit)
    else:
        with links.listen(address) as server:
            connected = links.receive(server, place.count, limit)
    processes = Processes(place.index, place.count, place.coordinator, connected)
    code, sentence = 0, ""
    try:
        yield processes
    except (UserError, Interrupted) as error:
        sentence = str(error)
        code = 128 + error.signal if isinstance(error, Interrupted) else 2
        raise
    except KeyboardInterrupt:
        code, sentence = 128 + signal.SIGINT, "it was interrupted."
        raise
    except Exception as error:
        # Perhaps of a collective that another process's end has broken off.
        if why := connected.others_left(_NEWS):
            code, sentence = 2, why
            raise UserError(why) from error
        code, sentence = 1, f"{type(error).__name__}, see its traceback."
        raise
    finally:
        if connected.leave(code, sentence) and jax.distributed.is_initialized():
            jax.distributed.shutdown()
        connected.close()


def _free_port() -> int:
    with socket.create_server(("", 0)) as server:
        return server.getsockname()[1]


def _is_local(host: str) -> bool:
    return host in ("localhost", "127.0.0.1")


def code_digest() -> str:
    """The sha256 of the zoo's own source files, and of the versions of what computes."""
    digest = hashlib.sha256()
    folder = pathlib.Path(version.__file__).parent
    for path in sorted(folder.rglob("*.py")):
        digest.update(str(path.relative_to(folder)).encode() + b"\0" + path.read_bytes() + b"\0")
    digest.update(f"{jax.__version__} {np.__version__}".encode())
    return digest.hexdigest()
