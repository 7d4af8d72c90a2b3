"""SLURM on this machine: four virtual nodes, loopback only, in a temporary folder."""

import contextlib
import getpass
import os
import pathlib
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

ROOT = pathlib.Path(__file__).parents[2]
PROGRAMS = ("slurmctld", "slurmd", "sbatch", "squeue", "scontrol", "scancel", "srun")
# Addresses of the loopback device, which JAX finds as the coordinator's: other names would need
# lines in /etc/hosts.
NODES = ("127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.4")
# Seconds after which a task that hangs fails its test.
DEADLINE = 600
# Seconds that a task waits before it is started again; 120 by default.
_WAIT = 5

_CONFIGURATION = """\
ClusterName=zoo
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort={port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/none
CredType=cred/none
AuthInfo=cred_expire={wait}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool_%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
ReturnToService=2
SlurmdTimeout=10
InactiveLimit=0
KillWait=10
MinJobAge=3600
MessageTimeout=20
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0
JobRequeue=1
GresTypes=gpu
SlurmdParameters=config_overrides
AccountingStorageType=accounting_storage/none
{nodes}
PartitionName=gpu Nodes=127.0.0.[1-4] Default=YES MaxTime=INFINITE State=UP
"""
_NODE = (
    "NodeName={node} NodeAddr={node} NodeHostname={host} Port={port} CPUs=8 RealMemory=65536 "
    "Gres=gpu:2 State=UNKNOWN"
)
# Device files in place of GPUs: training runs on CPUs.
_GPUS = "".join(
    f"NodeName=127.0.0.[1-4] Name=gpu File={device}\n" for device in ("/dev/zero", "/dev/full")
)


def missing_programs() -> list[str]:
    """Returns the programs of SLURM that are not installed."""
    return [program for program in PROGRAMS if _path(program) is None]


def _path(program):
    return shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")


def _free_ports(count):
    with contextlib.ExitStack() as stack:
        servers = [
            stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)
        ]
        return [server.getsockname()[1] for server in servers]


class Cluster:
    """A cluster, which `start` makes and ends."""

    def __init__(self, folder: pathlib.Path):
        self.folder = folder
        self.environment = {
            **os.environ,
            "SLURM_CONF": str(folder / "slurm.conf"),
            "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin",
            "JAX_PLATFORMS": "cpu",
        }

    def run(self, *words: str, stdin: str | None = None) -> str:
        """Runs a program of SLURM; returns its output."""
        process = subprocess.run(
            words, input=stdin, text=True, capture_output=True, env=self.environment
        )
        assert process.returncode == 0, f"{shlex.join(words)}: {process.stderr}"
        return process.stdout

    def start_node(self, node: str):
        self.run("slurmd", "-N", node)

    def kill_node(self, node: str):
        """Kills the daemon of a node, as if the machine were lost; its tasks live on as orphans."""
        os.kill(int((self.folder / f"{node}.pid").read_text()), signal.SIGKILL)

    def launch(self, lines: list[list[str]], *options: str) -> str:
        """Submits runs, given as words of `zoo train`, by `launch slurm`; returns the job's id."""
        runs = self.folder / f"runs-{time.monotonic_ns()}.txt"
        runs.write_text("\n".join(map(shlex.join, lines)))
        words = [sys.executable, "-m", "launch", "slurm", str(runs), "--python", sys.executable]
        output = f"--sbatch=--output={self.folder}/%A_%a.out"
        process = subprocess.run(
            [*words, output, *options],
            cwd=ROOT,
            text=True,
            capture_output=True,
            env=self.environment,
        )
        match = re.search(r"Submitted batch job (\d+)", process.stdout)
        assert match, process.stdout + process.stderr
        return match[1]

    def state(self, task: str) -> dict[str, str]:
        """Returns what `scontrol show job` tells of a task, such as "5_1"."""
        words = self.run("scontrol", "--oneliner", "show", "job", task).split()
        return dict(word.split("=", 1) for word in words if "=" in word)

    def log(self, task: str) -> str:
        path = self.folder / f"{task}.out"
        return path.read_text() if path.exists() else ""

    def wait(self, task: str, condition: Callable[[dict[str, str]], bool]) -> dict[str, str]:
        """Waits until a condition holds of a task's state, and returns the state."""
        until = time.monotonic() + DEADLINE
        while time.monotonic() < until:
            state = self.state(task)
            if condition(state):
                return state
            time.sleep(0.2)
        raise AssertionError(f"{task} is still {state}; its log:\n{self.log(task)}")

    def wait_for_end(self, task: str) -> dict[str, str]:
        ends = ("COMPLETED", "FAILED", "CANCELLED", "NODE_FAIL", "TIMEOUT")
        return self.wait(task, lambda state: state["JobState"] in ends)

    def processes(self, text: str) -> list[int]:
        """Returns the numbers of the cluster's processes whose command line has a text."""
        numbers = []
        variable = f"SLURM_CONF={self.environment['SLURM_CONF']}".encode()
        for folder in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):  # ended meanwhile
                words = (folder / "cmdline").read_bytes().split(b"\0")
                variables = (folder / "environ").read_bytes().split(b"\0")
                if variable in variables and text in b" ".join(words).decode(errors="replace"):
                    numbers.append(int(folder.name))
        return numbers

    def end(self):
        """Ends all that the cluster started: tasks, daemons, and tasks of lost nodes."""
        with contextlib.suppress(AssertionError):  # the daemons do not answer
            self.run("scancel", "--user", getpass.getuser())
        until = time.monotonic() + DEADLINE
        while numbers := self.processes(""):
            assert time.monotonic() < until, f"processes {numbers} cannot be killed"
            for number in numbers:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(number, signal.SIGKILL)
            time.sleep(0.1)


@contextlib.contextmanager
def start(folder: pathlib.Path) -> Iterator[Cluster]:
    """Starts a cluster in a folder, and ends all that it started."""
    cluster = Cluster(folder)
    (folder / "state").mkdir()
    host = socket.gethostname().partition(".")[0]
    port, *ports = _free_ports(1 + len(NODES))
    nodes = [
        _NODE.format(node=node, host=host, port=port)
        for node, port in zip(NODES, ports, strict=True)
    ]
    text = _CONFIGURATION.format(
        folder=folder, user=getpass.getuser(), port=port, wait=_WAIT, nodes="\n".join(nodes)
    )
    (folder / "slurm.conf").write_text(text)
    (folder / "gres.conf").write_text(_GPUS)
    try:
        cluster.run("slurmctld", "-c")
        for node in NODES:
            cluster.start_node(node)
        until = time.monotonic() + 60
        while "idle" not in cluster.run("sinfo", "--noheader", "--format=%T"):
            assert time.monotonic() < until, "no node of the cluster gets ready"
            time.sleep(0.1)
        yield cluster
    finally:
        cluster.end()
