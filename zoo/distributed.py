"""Several processes that train one run, by `jax.distributed`.

Each process runs the same command. They read the data and the run's folder alike, compute and write
checkpoints together, and process 0 alone writes the small files. A process that ends takes the
others with it: JAX raises an error in a collective, or ends the process by abort(), of which
`zoo.commands.supervised` makes one sentence.
"""

import collections
import contextlib
import functools
import hashlib
import os
import pathlib
import re
import socket
import threading
from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from zoo import version
from zoo.errors import ProcessLost, UserError, shortened

# Seconds without a sign of life until a process counts as lost, and in which all have to leave when
# one does. The signs come from a thread that neither Python nor a compilation holds up.
HEARTBEAT, LEAVING = 30, 10
AUTO = "auto"
_PORT = r"([1-9]\d{0,3}|[1-5]\d{4}|6[0-4]\d{3}|65[0-4]\d\d|655[0-2]\d|6553[0-5])"  # 1 to 65535
_ADDRESS = re.compile(rf"([^\s\[\]:/]+|\[[0-9a-fA-F:.]+\]):{_PORT}", re.ASCII)
# How messages of failed collectives and of the coordinator begin: not those of too little memory.
_STATUS = ("UNKNOWN", "UNAVAILABLE", "INTERNAL", "ABORTED", "CANCELLED", "DEADLINE_EXCEEDED")


def first() -> bool:
    """Whether this is process 0, which writes what one process writes."""
    return jax.process_index() == 0


@contextlib.contextmanager
def joined(coordinator: str | None, count: int | str | None, index: int | None) -> Iterator[None]:
    """Joins the processes of a run, for as long as the context lasts; before JAX is used.

    Args:
      coordinator: HOST:PORT at which process 0 is met.
      count: number of processes, or "auto" for what JAX finds out from SLURM, Open MPI, Kubernetes
        or a slice of TPUs about each that is not given. None or 1: this process is alone.
      index: number of this process, from 0.

    Raises:
      UserError: the processes cannot meet.
      ProcessLost: another process has ended.
    """
    if not several(coordinator, count, index):
        yield
        return
    _initialize(coordinator, None if count == AUTO else count, index)
    try:
        yield
    except Exception as error:
        if reason := _lost(error):
            raise ProcessLost(
                f"another process of this run has ended, or cannot be reached any more ({reason}): "
                "give the same command to all processes again; the run resumes from its last "
                "checkpoint."
            ) from error
        raise


def _lost(error: BaseException | None) -> str:
    """What JAX says of a collective that another process's end broke off; "" for other errors.

    Depending on where it is noticed, it is an error of JAX's own or a ValueError, and orbax may
    have raised another one in its place.
    """
    while error is not None:
        text = str(error).strip().partition("\n")[0]
        if isinstance(error, (jax.errors.JaxRuntimeError, ValueError)) and text.startswith(_STATUS):
            return text[:200]
        error = error.__cause__ or error.__context__
    return ""


def several(coordinator: str | None, count: int | str | None, index: int | None) -> bool:
    """Whether options ask for several processes; see `joined`.

    Raises:
      UserError: some options lack others, or there is no such process or address.
    """
    if coordinator is not None and not _ADDRESS.fullmatch(coordinator):
        raise UserError(
            f"--coordinator {shortened(coordinator, 80)}: give HOST:PORT, the machine of process 0 "
            "and a port that is free there."
        )
    given = {"--coordinator": coordinator, "--process": index}
    if count in (None, 1):
        for option, value in given.items():
            if value is not None and count is None:
                raise UserError(f"{option} needs --processes, the number of processes or {AUTO}.")
        if index:
            raise UserError(f"--process {index} is not one of 1 process: give 0, or leave it out.")
        return False
    if count == AUTO:
        return True
    if not isinstance(count, int) or count < 1:
        raise UserError(f"--processes {count}: give at least 1, or {AUTO}.")
    for option, value in given.items():
        if value is None:
            raise UserError(
                f"--processes {count} needs {option}: give it, or --processes {AUTO} where SLURM, "
                "Open MPI, Kubernetes or a slice of TPUs starts the processes."
            )
    if index is not None and not 0 <= index < count:
        raise UserError(
            f"--process {index} is not one of {count} processes: they are numbered from 0 to "
            f"{count - 1}."
        )
    return True


def _initialize(coordinator, count, index):
    bind = None
    if coordinator is not None:
        host, _, port = coordinator.rpartition(":")
        # Otherwise on all interfaces of its machine.
        bind = coordinator if host in ("localhost", "127.0.0.1") else None
        if index == 0:
            _check_free(host if bind else "", int(port))
    # SIGTERM is the trainer's.
    jax.config.update("jax_enable_preemption_service", False)
    try:
        jax.distributed.initialize(
            coordinator,
            count,
            index,
            cluster_detection_method="deactivate" if count else None,
            heartbeat_timeout_seconds=HEARTBEAT,
            shutdown_timeout_seconds=LEAVING,
            coordinator_bind_address=bind,
        )
        if count is not None and jax.process_count() != count:
            raise ValueError(f"process 0 was told of {jax.process_count()}, this one of {count}")
        _check_devices()
    except (jax.errors.JaxRuntimeError, RuntimeError, ValueError) as error:
        reason = " ".join(str(error).split())[:300]
        if count is None and isinstance(error, ValueError):
            raise UserError(
                f"--processes {AUTO}: JAX finds no cluster here ({reason}): give --coordinator, "
                "--processes and --process."
            ) from error
        raise UserError(
            f"the processes of this run do not meet ({reason}): start all of them with the same "
            "--coordinator and --processes, each with a --process of its own."
        ) from error


def _check_free(host: str, port: int):
    """UserError if this process could not listen there, for which JAX would crash."""
    try:
        socket.create_server((host, port)).close()
    except OSError as error:
        raise UserError(
            f"process 0 cannot listen at port {port} ({os.strerror(error.errno or 0)}): give "
            "--coordinator with a port that is free on its machine."
        ) from error


def _check_devices():
    """UserError, in every process, where they do not all find as many devices."""
    counts = collections.Counter(device.process_index for device in jax.devices())
    for index, count in sorted(counts.items()):
        if count != counts[0]:
            raise UserError(
                f"process {index} finds {count} device(s) and process 0 finds {counts[0]}: let "
                "every process see as many."
            )


def leave(code: int):
    """Waits until the other processes leave, too, and ends this one with an exit code if they do
    not; before a program ends, once it has said why."""
    if not jax.distributed.is_initialized():
        return
    # JAX would end this process by abort() when they have not come in time.
    late = threading.Timer(LEAVING - 2, os._exit, (code,))
    late.daemon = True
    late.start()
    with contextlib.suppress(jax.errors.JaxRuntimeError, RuntimeError):
        jax.distributed.shutdown()
    late.cancel()


def check_alike(**texts: str):
    """Compares what all processes must have in common, such as the recipe, by its hash.

    Args:
      **texts: {name: text}.

    Raises:
      UserError: in every process, if one differs from process 0; names it.
    """
    if jax.process_count() == 1:
        return
    digests = [hashlib.sha256(text.encode()).digest() for text in texts.values()]
    mine = np.frombuffer(b"".join(digests), np.uint8).reshape(len(texts), -1)
    everywhere = np.asarray(multihost_utils.process_allgather(mine))
    for index, other in enumerate(everywhere):
        for name, first_digest, digest in zip(texts, everywhere[0], other, strict=True):
            if not np.array_equal(first_digest, digest):
                raise UserError(
                    f"process {index} has another {name.replace('_', ' ')} than process 0 (sha256 "
                    f"{digest.tobytes().hex()[:12]} and {first_digest.tobytes().hex()[:12]}): "
                    "start all processes with the same command on the same code and data, in a "
                    "folder that all of them share."
                )


def wait():
    """Waits until all processes have come to this point."""
    if jax.process_count() > 1:
        multihost_utils.sync_global_devices("wait")


def greatest(number: int) -> jax.Array:
    """The greatest of a number in every process, once the devices have computed it."""
    by_device, compute = _greatest()
    mine = np.full(jax.local_device_count(), number, np.int32)
    return compute(jax.make_array_from_process_local_data(by_device, mine))


@functools.cache
def _greatest():
    """(sharding of a number a device, the program of the greatest)."""
    mesh = Mesh(np.array(jax.devices()), ("all",), axis_types=(AxisType.Auto,))
    whole = NamedSharding(mesh, PartitionSpec())
    return NamedSharding(mesh, PartitionSpec("all")), jax.jit(jnp.max, out_shardings=whole)


def code_digest() -> str:
    """The sha256 of the zoo's own source files, and of the versions of what computes."""
    digest = hashlib.sha256()
    folder = pathlib.Path(version.__file__).parent
    for path in sorted(folder.rglob("*.py")):
        digest.update(str(path.relative_to(folder)).encode() + b"\0" + path.read_bytes() + b"\0")
    digest.update(f"{jax.__version__} {np.__version__}".encode())
    return digest.hexdigest()
