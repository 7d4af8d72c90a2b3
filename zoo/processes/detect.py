"""Which process this is, of how many, and where process 0 is to be found.

Options of the command come first, then the environment: JAX's variables, which launch scripts set,
those of SLURM for a task of `srun`, those of a slice of TPUs in Kubernetes, and what a Cloud TPU
machine is told by its metadata server.
"""

import dataclasses
import glob
import os
import re
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping

from zoo.errors import UserError, shortened

# Where process 0 of a slice of TPUs is met; JAX's own coordinator has another port.
TPU_PORT = 8477
_METADATA = "http://metadata.google.internal/computeMetadata/v1/instance/attributes/"


@dataclasses.dataclass(frozen=True)
class Place:
    """The place of a process among those of a run.

    Attributes:
      coordinator: HOST:PORT at which process 0 is met.
      count: how many processes there are.
      index: the number of this one, from 0.
    """

    coordinator: str
    count: int
    index: int


def find(
    coordinator: str | None = None,
    count: int | None = None,
    index: int | None = None,
    environment: Mapping[str, str] = os.environ,
    metadata: Callable[[str], str] | None = None,
) -> Place | None:
    """The place of this process, None for a run of one process.

    Args:
      coordinator: HOST:PORT that the user gave, as the two that follow; None for what the
        environment says.
      count: of the processes; with 1 the environment is not looked at.
      index: of this process.
      environment: its variables.
      metadata: attribute of a Cloud TPU machine -> its value, "" for none; None for the machine's
        own.

    Raises:
      UserError: something of it is missing or is no number, or there is no such process.
    """
    if count == 1 and not index:
        return None
    given = {"coordinator": coordinator, "count": count, "index": index}
    there = _of_environment(environment, metadata or _ask)
    fields = there | {name: value for name, value in given.items() if value is not None}
    if not fields:
        return None
    for name, option in (
        ("count", "--processes N"),
        ("index", "--process I"),
        ("coordinator", "--coordinator HOST:PORT"),
    ):
        if name not in fields:
            raise UserError(
                f"of a run of several processes nothing says {_MEANING[name]}: give {option}."
            )
    place = Place(**fields)
    _check(place)
    return place if place.count > 1 else None


_MEANING = {
    "count": "how many there are",
    "index": "which of them this one is",
    "coordinator": "where process 0 is",
}


def _check(place: Place):
    if place.count < 1:
        raise UserError(
            f"{place.count} processes, by --processes or the environment: give at least 1."
        )
    if not 0 <= place.index < place.count:
        raise UserError(
            f"process {place.index}, by --process or the environment, is none of {place.count} "
            f"processes: they are numbered from 0 to {place.count - 1}."
        )
    host, _, port = place.coordinator.rpartition(":")
    named = host and not re.search(r"[\s/]", host)
    if not named or not port.isdecimal() or len(port) > 5 or not 0 < int(port) < 2**16:
        raise UserError(
            f"coordinator {shortened(place.coordinator)!r}, by --coordinator or the environment: "
            "give HOST:PORT, the machine of process 0 and a port that is free there."
        )


def _of_environment(environment, metadata) -> dict:
    """What the first of the sources that has anything says; {} for one process."""
    for source in (_jax, _slurm, _kubernetes_tpu):
        if fields := source(environment):
            return fields
    return _cloud_tpu(metadata)


def _jax(environment) -> dict:
    """JAX_COORDINATOR_ADDRESS, JAX_NUM_PROCESSES and JAX_PROCESS_ID; the index of a pod in an
    indexed job of Kubernetes in the place of the last."""
    if "JAX_COORDINATOR_ADDRESS" not in environment:
        return {}
    fields: dict = {"coordinator": environment["JAX_COORDINATOR_ADDRESS"]}
    for field, names in (
        ("count", ("JAX_NUM_PROCESSES",)),
        ("index", ("JAX_PROCESS_ID", "JOB_COMPLETION_INDEX")),
    ):
        if name := next((name for name in names if name in environment), None):
            fields[field] = _number(environment, name)
    return fields


def _slurm(environment) -> dict:
    """A task of `srun`; a batch script outside of it is one process."""
    names = ("SLURM_JOB_ID", "SLURM_STEP_NODELIST", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID")
    if not all(name in environment for name in names):
        return {}
    count = _number(environment, "SLURM_STEP_NUM_TASKS")
    if count == 1:
        return {}
    # Ports that no service has by its name, one for each of many jobs.
    port = 2**16 - 2**12 + _number(environment, "SLURM_JOB_ID") % 2**12
    node = _first_node(environment["SLURM_STEP_NODELIST"])
    return {
        "coordinator": f"{node}:{port}",
        "count": count,
        "index": _number(environment, "SLURM_PROCID"),
    }


def _first_node(nodes: str) -> str:
    """The first of a list of SLURM's, such as "node07" of "node[07-11,15],other"."""
    before, _, ranges = nodes.partition(",")[0].partition("[")
    first = re.split(r"[-,\]]", ranges)[0]
    return before + first


def _kubernetes_tpu(environment) -> dict:
    """A host of a slice, as GKE names them to its pods."""
    hosts = environment.get("TPU_WORKER_HOSTNAMES", "").split(",")
    if len(hosts) < 2 or "TPU_WORKER_ID" not in environment:
        return {}
    if "" in hosts:
        raise UserError(
            f"TPU_WORKER_HOSTNAMES={shortened(','.join(hosts))} has an empty name: give each host "
            "of the slice once."
        )
    return {
        "coordinator": f"{hosts[0]}:{TPU_PORT}",
        "count": len(hosts),
        "index": _number(environment, "TPU_WORKER_ID"),
    }


def _cloud_tpu(metadata) -> dict:
    """A machine of a slice: its number, and addresses of all, as "name:number:address" or alone."""
    addresses = metadata("worker-network-endpoints").split(",")
    if len(addresses) < 2:
        return {}
    number = metadata("agent-worker-number")
    return {
        "coordinator": f"{addresses[0].rpartition(':')[2]}:{TPU_PORT}",
        "count": len(addresses),
        "index": _number({"agent-worker-number": number}, "agent-worker-number"),
    }


def _ask(name: str) -> str:
    """An attribute of this machine; "" where it has no TPUs, or nobody knows it."""
    if not (glob.glob("/dev/accel*") or glob.glob("/dev/vfio/[0-9]*")):
        return ""
    request = urllib.request.Request(_METADATA + name, headers={"Metadata-Flavor": "Google"})
    try:
        with urllib.request.urlopen(request, timeout=5) as answer:
            return answer.read().decode()
    except (OSError, urllib.error.URLError, UnicodeDecodeError):
        return ""


def _number(environment, name: str) -> int:
    value = environment[name]
    if not value.isdecimal() or len(value) > 18:
        raise UserError(
            f"{name}={shortened(value, 40)} is not a whole number: correct it, or give "
            "--coordinator, --processes and --process."
        )
    return int(value)
