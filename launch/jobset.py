"""Kubernetes: a JobSet for each run, on a slice of TPUs or on hosts with GPUs, a pod on each host.

The exit code of a run decides whether it is restarted, see `runs_file.AGAIN` and
launch/jobset.yaml.
"""

import argparse
import json
import math
import pathlib
import posixpath
import shlex
import string

from launch import runs_file
from launch.runs_file import Run
from zoo.errors import LOST, UserError, shortened
from zoo.lab.commands import options
from zoo.lab.commands.options import Option

_TEMPLATE = string.Template(pathlib.Path(__file__).with_name("jobset.yaml").read_text())
# Where the Dockerfile puts this repository.
_FOLDER = "/zoo"
_PORT = 8477
# GKE's node label, topologies, and most chips on one host, of each kind of TPU; more chips are on
# hosts of 4.
_PLANES = "1x1 2x2 2x4 4x4 4x8 8x8 8x16 16x16"
_CUBES = "2x2x1 2x2x2 2x2x4 2x4x4 4x4x4 4x4x8 4x8x8 8x8x8"
_TPUS = {
    "v5e": ("tpu-v5-lite-podslice", _PLANES, 8),
    "v5p": ("tpu-v5p-slice", _CUBES, 4),
    "v6e": ("tpu-v6e-slice", _PLANES, 8),
}
_SPOT = "cloud.google.com/gke-spot"
_EXCLUSIVE = "alpha.jobset.sigs.k8s.io/exclusive-topology"
# Processes wait for each other for some minutes only; starting nodes may take longer. A pod whose
# peers never come ends as one that lost them: JobSet restarts the run, a limited number of times.
_PATIENCE = 1800
_WAIT = (
    "trap 'exit 143' TERM; SECONDS=0; for host in {{0..{last}}}; do "
    "until getent hosts {job}-$host.{name} >/dev/null; do "
    "if ((SECONDS >= {patience})); then "
    'echo "{job}-$host.{name} has no address after {patience} s" >&2; exit {lost}; fi; '
    "sleep 2; done; done; "
)


_LABEL = "[a-z0-9]([a-z0-9-]*[a-z0-9])?"
_NAME, _QUEUE = (
    runs_file.word(rf"{_LABEL}(\.{_LABEL})*", "a name of small letters, digits, - and .", longest)
    for longest in (253, 63)  # the queue is the value of a label
)


def _volume(text: str) -> tuple[str, str]:
    """Parses CLAIM:PATH; raises ArgumentTypeError for another form."""
    pattern = r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?:/[A-Za-z0-9_./-]*"
    description = "a claim and an absolute path, as in work:/zoo/runs"
    name, _, path = runs_file.word(pattern, description, 500)(text).partition(":")
    path = posixpath.normpath(f"/{path.lstrip('/')}")
    if posixpath.commonpath((path, _FOLDER)) == path:
        raise argparse.ArgumentTypeError(
            f"{shortened(text, 60)!r} hides {_FOLDER}, where the program is: give a path elsewhere "
            "or below it, as in work:/zoo/runs"
        )
    return name, path


def _variable(text: str) -> tuple[str, str]:
    """Parses NAME=VALUE; raises ArgumentTypeError for another form."""
    name, equals, value = text.partition("=")
    if not (equals and name.isascii() and name.isidentifier() and value.isprintable()):
        raise argparse.ArgumentTypeError(
            f"{shortened(text, 60)!r} is not NAME=VALUE, as in ZOO_DATA=/data"
        )
    return name, value


OPTIONS = (
    Option(
        "--image IMAGE",
        "image built with the Dockerfile",
        runs_file.word(r"[A-Za-z0-9][A-Za-z0-9_.:/@-]*", "an image such as registry/name:tag", 255),
        required=True,
    ),
    Option("--tpu KIND", "kind of TPU, v5e if not given", choices=_TPUS),
    Option(
        "--chips N",
        "TPU chips of a run, 4 if not given; more than one host has are on hosts of 4",
        options.integer(1),
    ),
    Option("--gpus N", "GPUs of each host, instead of TPUs; 0: CPUs alone", options.integer(0)),
    Option("--hosts N", "hosts of a run with --gpus", options.integer(1)),
    Option("--spot", "uses only spot nodes of GKE"),
    Option("--queue NAME", "local queue of Kueue that admits the runs", _QUEUE),
    Option("--service-account NAME", "service account of the pods", _NAME, default="default"),
    Option("--volume CLAIM:PATH ...", "mounts a persistent volume claim", _volume),
    Option(
        "--env NAME=VALUE ...", "a variable of the environment, as in ZOO_DATA=/data", _variable
    ),
)


def render(runs: list[Run], arguments: argparse.Namespace) -> str:
    """Renders the manifest for kubectl.

    Args:
      runs: the runs, a JobSet each.
      arguments: the parsed options.
    """
    hosts, nodes, devices = _place(arguments)
    volumes, mounts = [], []
    for number, (claim, path) in enumerate(arguments.volume):
        name = f"volume-{number}"
        volumes.append({"name": name, "persistentVolumeClaim": {"claimName": claim}})
        mounts.append({"name": name, "mountPath": path})
    paths = [path for _, path in arguments.volume]
    if len({*paths}) < len(paths):
        raise UserError("two volumes are mounted at one path: give each --volume its own.")
    labels, annotations, tolerations = {}, {}, []
    if arguments.queue:
        labels["kueue.x-k8s.io/queue-name"] = arguments.queue
    if arguments.spot:
        nodes[_SPOT] = "true"
        tolerations.append({"key": _SPOT, "operator": "Exists"})
    slices = hosts > 1 and arguments.gpus is None
    if slices:  # a slice of several hosts is one node pool, used by one run
        annotations[_EXCLUSIVE] = "cloud.google.com/gke-nodepool"
    documents = []
    for number, run in enumerate(runs):
        _check_lasts(run.folder, paths)
        name = f"{arguments.name}-{number}"
        values = {
            "name": name,
            "labels": labels,
            "annotations": annotations,
            "restarts": arguments.restarts,
            "hosts": hosts,
            "again": runs_file.RESUMABLE,
            "grace": arguments.grace,
            "account": arguments.service_account,
            "nodes": nodes,
            "tolerations": tolerations,
            "volumes": volumes,
            "image": arguments.image,
            "folder": _FOLDER,
            "command": _command(run, name, hosts, slices),
            "environment": [{"name": key, "value": value} for key, value in arguments.env],
            "mounts": mounts,
            "devices": devices,
        }
        # JSON without surrogate escapes is YAML. Quoting matters: "no" and "null" are names, too.
        texts = {key: json.dumps(value, ensure_ascii=False) for key, value in values.items()}
        documents.append(_TEMPLATE.substitute(texts))
    return "".join(documents)


def _place(arguments) -> tuple[int, dict[str, str], dict[str, int]]:
    """Returns (number of hosts of a run, node labels, devices of each host)."""
    if arguments.gpus is not None:
        if arguments.tpu or arguments.chips:
            raise UserError("--gpus cannot be combined with --tpu or --chips: give one of them.")
        gpus = {"nvidia.com/gpu": arguments.gpus} if arguments.gpus else {}
        return arguments.hosts or 1, {}, gpus
    if arguments.hosts:
        raise UserError("--hosts is for --gpus: a slice of TPUs has the hosts of its --chips.")
    kind, chips = arguments.tpu or "v5e", arguments.chips or 4
    label, shapes, most = _TPUS[kind]
    topologies = {math.prod(map(int, shape.split("x"))): shape for shape in shapes.split()}
    if chips not in topologies:
        raise UserError(
            f"--chips {chips}: slices of {kind} have {', '.join(map(str, topologies))} chips."
        )
    nodes = {
        "cloud.google.com/gke-tpu-accelerator": label,
        "cloud.google.com/gke-tpu-topology": topologies[chips],
    }
    hosts = chips // 4 if chips > most else 1
    return hosts, nodes, {"google.com/tpu": chips // hosts}


def _check_lasts(folder: str, paths: list[str]):
    """Raises UserError for a folder neither on a volume nor in a bucket, which would be lost."""
    if "://" in folder:  # which the training checks
        return
    place = posixpath.normpath(posixpath.join(_FOLDER, folder))
    if not any(posixpath.commonpath((place, path)) == path for path in paths):
        raise UserError(
            f"{folder} is a folder of the pod, which is lost with it: mount a volume at {place} or "
            "above it with --volume CLAIM:PATH, or give a folder in a bucket, as in "
            "gs://bucket/run."
        )


def _command(run: Run, name: str, hosts: int, slices: bool) -> str:
    """Returns the shell command of a pod."""
    command = f"exec {shlex.join(['python', 'train.py', *run.words])}"
    if hosts == 1:
        return command
    job = f"{name}-run-0"
    if slices:
        place = "--processes auto"
    else:
        place = (
            f"--coordinator {job}-0.{name}:{_PORT} --processes {hosts} "
            '--process "$JOB_COMPLETION_INDEX"'
        )
    wait = _WAIT.format(last=hosts - 1, job=job, name=name, patience=_PATIENCE, lost=LOST)
    return f"{wait}{command} {place}"


COMMAND = ("kubectl", "apply", "-f", "-")
