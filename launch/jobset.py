"""Kubernetes: a JobSet with a job for each run, on slices of TPUs, a pod on each host of a slice.

A pod that is taken away gets SIGTERM; training saves its state and leaves with 143, which counts as
no failure, and the pod is made again. So the folder of a run has to outlive its pod: give a mounted
volume, or a bucket.
"""

import argparse
import json
import shlex

from launch import runs_file, tpus
from launch.runs_file import Run
from zoo.commands import options

_HEADER = """apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata:
  name: {name}{annotations}
spec:
  failurePolicy:
    maxRestarts: {restarts}
  replicatedJobs:
"""
_JOB = """  - name: {name}
    replicas: 1
    template:
      spec:
        parallelism: {hosts}
        completions: {hosts}
        completionMode: Indexed
        backoffLimit: 3
        podFailurePolicy:
          rules:
          - action: Ignore  # taken away, and its state is saved
            onPodConditions:
            - type: DisruptionTarget
          - action: Ignore
            onExitCodes:
              operator: In
              values: [75, 143]  # 75: another pod of the run was
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
              command: ["bash", "-c", {command}]{environment}
              resources:
                limits:
                  google.com/tpu: {chips}
"""
# A slice of several hosts is one node pool, which a job has to itself.
_ANNOTATIONS = """
  annotations:
    alpha.jobset.sigs.k8s.io/exclusive-topology: cloud.google.com/gke-nodepool"""
# Each pod is a process of the run; its number is that of the pod, which Kubernetes tells it.
_ENVIRONMENT = """
              env:
              - name: JAX_COORDINATOR_ADDRESS
                value: {name}-{job}-0-0.{name}:8477
              - name: JAX_NUM_PROCESSES
                value: '{hosts}'"""
# Seconds that pods wait for each other, while nodes are made for some.
_MEET = 3600


def add_to(parser: argparse.ArgumentParser):
    """Adds the options of Kubernetes."""
    add = parser.add_argument
    image = runs_file.word(
        r"[A-Za-z0-9][A-Za-z0-9_.:/@-]*", "an image such as registry/name:tag", 255
    )
    add(
        "--image",
        type=image,
        required=True,
        help="with this repository as its working folder, and jax[tpu]",
    )
    add("--tpu", choices=tpus.SLICES, default="v5e")
    add("--chips", type=options.whole(1), default=4, help="of a run; from 16, 4 on each host")
    add("--restarts", type=options.whole(0), default=3, help="of the whole set, after failures")
    add(
        "--grace",
        type=options.whole(1, 65_535),
        default=300,
        metavar="SECONDS",
        help="from SIGTERM to the end",
    )


def render(runs: list[Run], arguments: argparse.Namespace) -> str:
    """The manifest that kubectl takes."""
    kind, topology, hosts = tpus.find(arguments.tpu, arguments.chips)
    several = hosts > 1
    further = ["--meet-within", str(_MEET)] if several else []
    jobs = []
    for number, run in enumerate(runs):
        job = f"run-{number}"
        environment = _ENVIRONMENT.format(name=arguments.name, job=job, hosts=hosts)
        command = shlex.join(["python", "train.py", *run.words, *further])
        values = {
            "name": job,
            "grace": arguments.grace,
            "accelerator": kind.kubernetes,
            "topology": topology,
            "hosts": hosts,
            "image": _quoted(arguments.image),
            "command": _quoted(f"exec {command}"),
            "environment": environment if several else "",
            "chips": arguments.chips // hosts,
        }
        jobs.append(_JOB.format(**values))
    header = _HEADER.format(
        name=_quoted(arguments.name),  # "no" and "null" are names, too
        restarts=arguments.restarts,
        annotations=_ANNOTATIONS if several else "",
    )
    return header + "".join(jobs)


def _quoted(text: str) -> str:
    """A text in YAML, as JSON is; without its escapes of two halves, which YAML does not have."""
    return json.dumps(text, ensure_ascii=False)


COMMAND = ("kubectl", "apply", "-f", "-")
