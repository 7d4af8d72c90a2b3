"""Which process this is: from options, JAX's variables, SLURM, Kubernetes and TPU machines."""

import re

import pytest

from zoo.errors import UserError
from zoo.processes.detect import Place, find

SLURM = {
    "SLURM_JOB_ID": "8195",
    "SLURM_STEP_NODELIST": "node[07-09,12],other3",
    "SLURM_STEP_NUM_TASKS": "4",
    "SLURM_PROCID": "2",
}
JAX = {"JAX_COORDINATOR_ADDRESS": "pod-0.set:8476", "JAX_NUM_PROCESSES": "3"}
TPU = {"TPU_WORKER_HOSTNAMES": "t-0,t-1", "TPU_WORKER_ID": "1"}


def nothing(name):
    return ""


@pytest.mark.parametrize(
    "environment, place",
    [
        (SLURM, Place("node07:61443", 4, 2)),
        (JAX | {"JAX_PROCESS_ID": "1"}, Place("pod-0.set:8476", 3, 1)),
        (JAX | {"JOB_COMPLETION_INDEX": "2"}, Place("pod-0.set:8476", 3, 2)),
        (JAX | {"JAX_PROCESS_ID": "1"} | SLURM | TPU, Place("pod-0.set:8476", 3, 1)),
        (TPU, Place("t-0:8477", 2, 1)),
        ({}, None),
        (SLURM | {"SLURM_STEP_NUM_TASKS": "1"}, None),
        ({"SLURM_JOB_ID": "7", "SLURM_NTASKS": "4", "SLURM_PROCID": "0"}, None),  # a batch script
        (TPU | {"TPU_WORKER_HOSTNAMES": "localhost"}, None),
        (JAX | {"JAX_NUM_PROCESSES": "1", "JAX_PROCESS_ID": "0"}, None),
        ({"JOB_COMPLETION_INDEX": "2"}, None),  # of an indexed job whose pods are runs of their own
    ],
)
def test_the_environment_says_which_process_this_is(environment, place):
    assert find(environment=environment, metadata=nothing) == place


@pytest.mark.parametrize(
    "nodes, first",
    [("a", "a"), ("a,b", "a"), ("a[3,5]", "a3"), ("n-x[001-015],b", "n-x001"), ("a[7]", "a7")],
)
def test_the_first_node_of_a_list_is_found(nodes, first):
    place = find(environment=SLURM | {"SLURM_STEP_NODELIST": nodes}, metadata=nothing)
    assert place is not None and place.coordinator == f"{first}:61443"


@pytest.mark.parametrize("endpoints", ["10.0.0.5,10.0.0.6", "h:0:10.0.0.5,h:1:10.0.0.6"])
def test_a_tpu_machine_asks_who_it_is(endpoints):
    told = {"worker-network-endpoints": endpoints, "agent-worker-number": "1"}
    assert find(environment={}, metadata=told.__getitem__) == Place("10.0.0.5:8477", 2, 1)
    alone = {"worker-network-endpoints": "10.0.0.5", "agent-worker-number": "0"}
    assert find(environment={}, metadata=alone.__getitem__) is None


def test_options_come_first():
    assert find("h:1", 5, 4, environment=SLURM) == Place("h:1", 5, 4)
    assert find("h:1", environment=SLURM) == Place("h:1", 4, 2)
    assert find(count=1, environment=SLURM) is None


@pytest.mark.parametrize(
    "options, environment, match",
    [
        (("h:1", None, None), {}, "nothing says how many there are: give --processes N"),
        (("h:1", 2, None), {}, "nothing says which of them this one is: give --process I"),
        ((None, 2, 0), {}, "nothing says where process 0 is: give --coordinator HOST:PORT"),
        ((None, None, None), JAX, "which of them this one is"),
        (("h:1", 0, 0), {}, "0 processes, by --processes or the environment: give at least 1"),
        (("h:1", 2, 2), {}, "is none of 2 processes: they are numbered from 0 to 1"),
        (("h:1", 2, -1), {}, "process -1, by --process or the environment, is none"),
        (("h:1", 1, 1), {}, "process 1, by --process or the environment, is none of 1"),
        (("h", 2, 1), {}, "coordinator 'h', by --coordinator or the environment: give HOST:PORT"),
        (("h:x", 2, 1), {}, "coordinator 'h:x'"),
        (("h:70000", 2, 1), {}, "coordinator 'h:70000'"),
        (
            (None, None, None),
            SLURM | {"SLURM_PROCID": "two"},
            "SLURM_PROCID=two is not a whole number",
        ),
    ],
)
def test_what_is_wrong_or_missing_is_named(options, environment, match):
    with pytest.raises(UserError, match=re.escape(match)):
        find(*options, environment=environment, metadata=nothing)
