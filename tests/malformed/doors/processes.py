"""Options and variables that do not say which process of a run this one is."""

import os
import unittest.mock

from tests.malformed import readers
from zoo.processes import detect

SLURM = {
    "SLURM_JOB_ID": "8195",
    "SLURM_STEP_NODELIST": "node[07-09,12]",
    "SLURM_STEP_NUM_TASKS": "4",
    "SLURM_PROCID": "2",
}
JAX = {
    "JAX_COORDINATOR_ADDRESS": "pod-0.set:8476",
    "JAX_NUM_PROCESSES": "3",
    "JAX_PROCESS_ID": "1",
}
TPU = {"TPU_WORKER_HOSTNAMES": "t-0,t-1", "TPU_WORKER_ID": "1"}
CLOUD = {"worker-network-endpoints": "10.0.0.5,10.0.0.6", "agent-worker-number": "1"}
NAMES = {"SLURM": SLURM, "JAX": JAX, "TPU": TPU, "CLOUD": CLOUD}


def _nothing(name):
    return ""


def _environment(environment, folder):
    detect.find(environment=environment, metadata=_nothing)


def _metadata(told, folder):
    detect.find(environment={}, metadata=told.__getitem__)


def _options(options, folder):
    with unittest.mock.patch.dict(os.environ, clear=False):
        for name in {*SLURM, *JAX, *TPU}:
            os.environ.pop(name, None)
        readers.CALLS["train.py"](f"--config micro_softmax w {options}", folder)


CALLS = {
    "environment of a process": _environment,
    "metadata of a TPU machine": _metadata,
    "options of a process": _options,
}
