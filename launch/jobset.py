"""Kubernetes: a JobSet with a job for each run, on slices of TPUs.

A pod that is taken away gets SIGTERM; training saves its state and leaves with 143, which counts as
no failure, and the pod is made again. So the folder of a run has to outlive its pod: give a mounted
volume, or a bucket.
"""

import argparse
import json
import re
import shlex

from launch import tpus
from launch.runs_file import Run
from zoo.errors import UserError

_HEADER = """apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata:
  name: {name}
spec:
  failurePolicy:
    maxRestarts: {restarts}
  replicatedJobs:
"""
_JOB = """  - name: {name}
    replicas: 1
    template:
      spec:
        parallelism: 1
        completions: 1
        backoffLimit: 3
        podFailurePolicy:
          rules:
          - action: Ignore  # taken away, and its state is saved
            onPodConditions:
            - type: DisruptionTarget
          - action: Ignore
            onExitCodes:
              operator: In
              values: [143]
          - action: FailJob  # a mistake that another try does not mend
            onExitCodes:
              operator: In
              values: [2]
        template:
          spec:
            restartPolicy: Never
            terminationGracePeriodSeconds: {grace}
            nodeSelector:
              cloud.google.com/gke-tpu-accelerator: {accelerator}
              cloud.google.com/gke-tpu-topology: {topology}
            containers:
            - name: zoo
              image: {image}
              # The shell gives way to the program, which gets the signals.
              command: ["bash", "-c", {command}]
              resources:
                limits:
                  google.com/tpu: {chips}
"""


def add_to(parser: argparse.ArgumentParser):
    """Adds the options of Kubernetes."""
    add = parser.add_argument
    add("--image", required=True, help="with this repository as its working folder, and jax[tpu]")
    add("--tpu", choices=tpus.SLICES, default="v5e")
    add("--chips", type=int, default=4, help="of a run: those of one host")
    add("--restarts", type=int, default=3, help="of the whole set, after failures")
    add("--grace", type=int, default=300, metavar="SECONDS", help="from SIGTERM to the end")


def render(runs: list[Run], arguments: argparse.Namespace) -> str:
    """The manifest that kubectl takes."""
    if not re.fullmatch(r"[a-z]([a-z0-9-]{0,38}[a-z0-9])?", arguments.name):
        raise UserError(
            f"--name {arguments.name}: give small letters, digits and -, 40 at most, a letter "
            "first."
        )
    kind, topology = tpus.find(arguments.tpu, arguments.chips)
    jobs = [
        _JOB.format(
            name=f"run-{number}",
            grace=arguments.grace,
            accelerator=kind.kubernetes,
            topology=topology,
            image=json.dumps(arguments.image),
            # JSON is YAML.
            command=json.dumps(f"exec {shlex.join(['python', 'train.py', *run.words])}"),
            chips=arguments.chips,
        )
        for number, run in enumerate(runs)
    ]
    header = _HEADER.format(name=arguments.name, restarts=arguments.restarts)
    return header + "".join(jobs)


COMMAND = ("kubectl", "apply", "-f", "-")
