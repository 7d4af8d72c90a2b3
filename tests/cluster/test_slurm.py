"""`launch slurm` on a SLURM of four virtual nodes, as docs/launch.md tells it."""

import json
import os
import signal
import time

import pytest

from tests.cluster import slurm
from tests.lab.training import test_train_interruption as interruption

if missing := slurm.missing_programs():
    pytest.skip(f"SLURM is not installed ({', '.join(missing)})", allow_module_level=True)

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("signals")]
# Steps that no test waits for.
ENDLESS = ("--set", "training.epochs=100000")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with slurm.start(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """The end of a run that nobody stops."""
    workdir = tmp_path_factory.mktemp("undisturbed") / "run"
    interruption.finish(interruption.command(workdir))
    return interruption.end_of(workdir)


def words(workdir, *settings):
    """The words of `zoo train` for a small run."""
    return [*interruption.command(workdir)[1:], *settings]


def wait_for_step(cluster, task, workdir, step):
    """Waits until a running task has a checkpoint of a step or a later step."""
    condition = lambda state: (  # noqa: E731
        state["JobState"] == "RUNNING" and interruption.newest_step(workdir) >= step
    )
    return cluster.wait(task, condition)


def signal_task(cluster, task):
    """Sends SIGTERM to the script of a task alone, as SLURM does near the time limit."""
    cluster.run("scancel", "--batch", "--signal=TERM", task)


def started_again(times):
    return lambda state: state["JobState"] == "RUNNING" and int(state["Restarts"]) >= times


def test_runs_of_an_array_run_two_at_once_and_an_error_ends_its_run_alone(cluster, tmp_path):
    lines = [words(tmp_path / f"run{number}") for number in range(3)]
    lines.insert(1, words(tmp_path / "wrong", "--set", f"init_from={tmp_path}/nowhere"))
    job = cluster.launch(lines, "--at-once", "2")
    states = [cluster.wait_for_end(f"{job}_{number}") for number in range(4)]
    assert [state["ExitCode"] for state in states] == ["0:0", "2:0", "0:0", "0:0"]
    assert [state["Restarts"] for state in states] == ["0"] * 4
    assert "error: " in cluster.log(f"{job}_1") and "nowhere" in cluster.log(f"{job}_1")
    for later in states[2:]:  # each began when another had ended
        assert any(state["EndTime"] <= later["StartTime"] for state in states[:2])
    for number in range(3):
        results = json.loads((tmp_path / f"run{number}/experiment.json").read_text())
        assert results["training"]["epochs"] == 12


def test_a_run_near_its_time_limit_is_queued_again_and_ends_to_the_bit(
    cluster, tmp_path, undisturbed
):
    workdir = tmp_path / "run"
    job = cluster.launch([words(workdir)])
    task = f"{job}_0"
    for times, step in enumerate((7, 100, 200), start=1):
        wait_for_step(cluster, task, workdir, step)
        signal_task(cluster, task)
        state = cluster.wait(task, lambda state: state["Restarts"] == str(times))  # noqa: B023
    state = cluster.wait_for_end(task)
    assert (state["JobState"], state["ExitCode"]) == ("COMPLETED", "0:0")
    assert cluster.log(task).count("SIGTERM after step") == 3
    interruption.assert_same_end(undisturbed, interruption.end_of(workdir))


def test_slurm_itself_sends_sigterm_before_the_time_limit(cluster, tmp_path):
    workdir = tmp_path / "run"
    job = cluster.launch([words(workdir, *ENDLESS)], "--time", "1", "--grace", "30")
    state = cluster.wait(f"{job}_0", started_again(1))
    assert state["TimeLimit"] == "00:01:00"
    assert "SIGTERM after step" in cluster.log(f"{job}_0")
    cluster.run("scancel", f"{job}_0")
    cluster.wait_for_end(f"{job}_0")


def test_scancel_ends_a_run_that_another_job_resumes(cluster, tmp_path, undisturbed):
    workdir = tmp_path / "run"
    job = cluster.launch([words(workdir)])
    wait_for_step(cluster, f"{job}_0", workdir, 7)
    cluster.run("scancel", f"{job}_0")
    state = cluster.wait_for_end(f"{job}_0")
    assert (state["JobState"], state["Restarts"]) == ("CANCELLED", "0")
    until = time.monotonic() + slurm.DEADLINE
    while cluster.processes(str(workdir)) and time.monotonic() < until:
        time.sleep(0.1)
    assert "the state is saved" in cluster.log(f"{job}_0")
    job = cluster.launch([words(workdir)])
    assert cluster.wait_for_end(f"{job}_0")["ExitCode"] == "0:0"
    assert "resuming after step" in cluster.log(f"{job}_0")
    interruption.assert_same_end(undisturbed, interruption.end_of(workdir))


def test_a_run_on_two_nodes_outlives_a_killed_process(cluster, tmp_path):
    workdir = tmp_path / "run"
    words_of_all = [word for word in words(workdir) if word not in ("--devices", "1")]
    job = cluster.launch([words_of_all], "--nodes", "2")
    task = f"{job}_0"
    state = wait_for_step(cluster, task, workdir, 14)  # when the checkpoint of step 7 is whole
    assert state["NumNodes"].startswith("2")
    children = [n for n in cluster.processes(str(workdir)) if trains(n)]
    assert len(children) == 2
    os.kill(children[0], signal.SIGKILL)
    cluster.wait(task, lambda state: state["Restarts"] == "1")
    state = cluster.wait_for_end(task)
    assert (state["JobState"], state["Restarts"]) == ("COMPLETED", "1"), cluster.log(task)
    assert "resuming after step" in cluster.log(task)


def trains(number):
    """Whether a process is a child that trains, not its parent, a script or a daemon."""
    try:
        with open(f"/proc/{number}/environ", "rb") as file:
            return b"ZOO_SUPERVISED=1" in file.read().split(b"\0")
    except OSError:
        return False


def test_a_run_of_a_lost_node_goes_on_elsewhere_when_its_orphan_has_ended(cluster, tmp_path):
    """The orphan holds the lock of the run's folder until it is killed."""
    workdir = tmp_path / "run"
    job = cluster.launch([words(workdir, *ENDLESS)])
    task = f"{job}_0"
    node = wait_for_step(cluster, task, workdir, 7)["NodeList"]
    orphans = cluster.processes(str(workdir))
    cluster.kill_node(node)
    try:
        state = cluster.wait(task, lambda state: int(state["Restarts"]) >= 2)
        assert "is being trained by process" in cluster.log(task)
    finally:
        for number in orphans:
            os.kill(number, signal.SIGKILL)
    steps = interruption.newest_step(workdir)
    state = cluster.wait(task, started_again(2))
    state = wait_for_step(cluster, task, workdir, steps + 1)
    assert state["NodeList"] != node
    cluster.run("scancel", task)
    cluster.wait_for_end(task)
    cluster.start_node(node)


def test_a_run_is_started_again_at_most_so_often(cluster, tmp_path):
    workdir = tmp_path / "run"
    job = cluster.launch([words(workdir, *ENDLESS)], "--restarts", "1")
    task = f"{job}_0"
    wait_for_step(cluster, task, workdir, 7)
    signal_task(cluster, task)
    cluster.wait(task, started_again(1))
    steps = interruption.newest_step(workdir)
    wait_for_step(cluster, task, workdir, steps + 1)
    signal_task(cluster, task)
    state = cluster.wait_for_end(task)
    assert (state["JobState"], state["ExitCode"]) == ("FAILED", "143:0")


@pytest.mark.parametrize("small_disk", ["100k"], indirect=True)
def test_a_full_disk_ends_a_run_with_a_sentence(cluster, small_disk):
    job = cluster.launch([words(small_disk / "run")])
    state = cluster.wait_for_end(f"{job}_0")
    assert (state["JobState"], state["ExitCode"]) == ("FAILED", "2:0")
    assert "the disk is full" in cluster.log(f"{job}_0")
