"""Several processes that train one run, by `jax.distributed`.

Each process runs the same command. All processes read the data and the run's folder, compute and
write checkpoints together; only process 0 writes the small files. When a process ends, JAX raises
an error in a collective of the others, or ends them by abort(), which `zoo.lab.commands.train`
reports as one sentence.
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
from zoo.errors import Interrupted, ProcessLost, UserError, shortened

# Seconds without a heartbeat until a process counts as lost, and seconds within which all processes
# must leave once one does. Neither Python nor a compilation blocks the thread of heartbeats.
HEARTBEAT, LEAVING = 30, 10
AUTO = "auto"
_PORT = r"([1-9]\d{0,3}|[1-5]\d{4}|6[0-4]\d{3}|65[0-4]\d\d|655[0-2]\d|6553[0-5])"  # 1 to 65535
_ADDRESS = re.compile(rf"([^\s\[\]:/]+|\[[0-9a-fA-F:.]+\]):{_PORT}", re.ASCII)
# First words of error messages of failed collectives and of the coordinator. RESOURCE_EXHAUSTED,
# too little memory, is not one of them.
_STATUS = ("UNKNOWN", "UNAVAILABLE", "INTERNAL", "ABORTED", "CANCELLED", "DEADLINE_EXCEEDED")


def is_first_process() -> bool:
    """Whether this is process 0, which alone writes logs, metrics and small files."""
    return jax.process_index() == 0


@contextlib.contextmanager
def connect(coordinator: str | None, count: int | str | None, index: int | None) -> Iterator[None]:
    """Connects the processes of a run within a context, to be entered before JAX is used; for the
    count "auto" JAX finds missing arguments from SLURM, Open MPI, Kubernetes or a slice of TPUs."""
    if not is_multiprocess(coordinator, count, index):
        yield
        return
    _initialize(coordinator, None if count == AUTO else count, index)
    stop = None
    try:
        try:
            yield
        except Interrupted as interruption:  # in all processes, after the same step
            stop = interruption
        # JAX would end those that leave later than LEAVING seconds after the first.
        wait()
    except Exception as error:
        reason = _lost(error)
        if reason:
            raise ProcessLost(
                f"another process of this run has ended, or cannot be reached any more ({reason}): "
                "give the same command to all processes again; the run resumes from its last "
                "checkpoint."
            ) from error
        raise
    if stop:
        raise stop


def _lost(error: BaseException | None) -> str:
    """Returns JAX's message if an error, or the cause of an error of orbax, is due to another
    process's end, else ""."""
    while error is not None:
        text = str(error).strip().partition("\n")[0]
        if isinstance(error, (jax.errors.JaxRuntimeError, ValueError)) and text.startswith(_STATUS):
            return text[:200]
        error = error.__cause__ or error.__context__
    return ""


def is_multiprocess(coordinator: str | None, count: int | str | None, index: int | None) -> bool:
    """Whether options ask for several processes."""
    if coordinator is not None and not _ADDRESS.fullmatch(coordinator):
        raise UserError(
            f"--coordinator {shortened(coordinator, 80)}: give HOST:PORT, the machine of process 0 "
            "and a free port there."
        )
    options = {"--coordinator": coordinator, "--process": index}
    if count in (None, 1):
        for option, value in options.items():
            if value is not None and count is None:
                raise UserError(f"{option} needs --processes, the number of processes or {AUTO}.")
        if index:
            raise UserError(f"--process {index} is not one of 1 process: give 0, or leave it out.")
        return False
    if count == AUTO:
        return True
    if not isinstance(count, int) or count < 1:
        raise UserError(f"--processes {count}: give at least 1, or {AUTO}.")
    for option, value in options.items():
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
    """Calls `jax.distributed.initialize`, and checks that all processes agree on their number."""
    bind = None
    if coordinator is not None:
        host, _, port = coordinator.rpartition(":")
        # None: the coordinator listens on all interfaces of its machine.
        bind = coordinator if host in ("localhost", "127.0.0.1") else None
        if index == 0:
            _check_free(host if bind else "", int(port))
    # The trainer handles SIGTERM itself.
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
            raise ValueError(
                f"process 0 has --processes {jax.process_count()}, this process {count}"
            )
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
            "--coordinator and --processes, each with its own --process."
        ) from error


def _check_free(host: str, port: int):
    """Raises UserError if this process cannot listen at a port, where JAX would crash."""
    try:
        socket.create_server((host, port)).close()
    except OSError as error:
        raise UserError(
            f"process 0 cannot listen at port {port} ({os.strerror(error.errno or 0)}): give "
            "--coordinator with a free port of its machine."
        ) from error


def _check_devices():
    """Raises UserError, in every process, unless all processes find equally many devices."""
    counts = collections.Counter(device.process_index for device in jax.devices())
    for index, count in sorted(counts.items()):
        if count != counts[0]:
            raise UserError(
                f"process {index} finds {count} device(s) and process 0 finds {counts[0]}: give "
                "every process the same number of devices."
            )


def leave(code: int):
    """Waits until the other processes leave, too; ends this process if they do not.

    To be called at the end of a program, after its messages.
    """
    if not jax.distributed.is_initialized():
        return
    # JAX would end this process by abort() if the others do not leave in time.
    late = threading.Timer(LEAVING - 2, os._exit, (code,))
    late.daemon = True
    late.start()
    with contextlib.suppress(jax.errors.JaxRuntimeError, RuntimeError):
        jax.distributed.shutdown()
    late.cancel()


def check_same_texts(**texts: str):
    """Checks that all processes have the same texts, such as the recipe, by their hashes."""
    if jax.process_count() == 1:
        return
    digests = [hashlib.sha256(text.encode()).digest() for text in texts.values()]
    mine = np.frombuffer(b"".join(digests), np.uint8).reshape(len(texts), -1)
    everywhere = np.asarray(multihost_utils.process_allgather(mine))
    for index, digests_there in enumerate(everywhere):
        for name, first_digest, digest in zip(texts, everywhere[0], digests_there, strict=True):
            if not np.array_equal(first_digest, digest):
                raise UserError(
                    f"process {index} has another {name.replace('_', ' ')} than process 0 (sha256 "
                    f"{digest.tobytes().hex()[:12]} and {first_digest.tobytes().hex()[:12]}): "
                    "start all processes with the same command on the same code and data, in a "
                    "shared folder."
                )


def wait():
    """Waits until all processes have called this."""
    if jax.process_count() > 1:
        multihost_utils.sync_global_devices("wait")


def maximum(number: int) -> jax.Array:
    """Computes the maximum of the numbers of all processes, asynchronously on the devices."""
    by_device, compute = _compile_maximum()
    local_numbers = np.full(jax.local_device_count(), number, np.int32)
    return compute(jax.make_array_from_process_local_data(by_device, local_numbers))


@functools.cache
def _compile_maximum():
    """Returns the sharding of one number for each device, and the compiled maximum over them."""
    mesh = Mesh(np.array(jax.devices()), ("all",), axis_types=(AxisType.Auto,))
    replicated = NamedSharding(mesh, PartitionSpec())
    return NamedSharding(mesh, PartitionSpec("all")), jax.jit(jnp.max, out_shardings=replicated)


def code_digest() -> str:
    """Computes the SHA-256 of Zoo's source files and the versions of JAX and NumPy."""
    digest = hashlib.sha256()
    folder = pathlib.Path(version.__file__).parent
    for path in sorted(folder.rglob("*.py")):
        digest.update(str(path.relative_to(folder)).encode() + b"\0" + path.read_bytes() + b"\0")
    digest.update(f"{jax.__version__} {np.__version__}".encode())
    return digest.hexdigest()
