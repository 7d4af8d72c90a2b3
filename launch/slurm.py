"""SLURM: an array job, a task for each run.

A task receives SIGTERM some minutes before it is stopped, at its time limit or for another job.
Training then saves its state and exits with 143, and the task is queued again; the same command
resumes the run. A task that `scancel` ends is not queued again. On several nodes, a run has a
process on each node, with all its GPUs.
"""

import argparse
import pathlib
import re
import shlex
import string

from launch import runs_file
from launch.runs_file import Run
from zoo.errors import shortened
from zoo.lab.commands import options
from zoo.lab.commands.options import Option


class _Template(string.Template):
    """A template of a shell's script, in which "$" is the shell's."""

    delimiter = "%"


_SCRIPT = _Template(pathlib.Path(__file__).with_name("slurm.sh").read_text(encoding="utf-8"))
_SINGLE_NODE = 'relay "${command[@]}"'
# srun returns the greatest exit code of its tasks. If one task exits with 2, a user's error, and
# the others with 75, a lost process, 2 has to win. By default, JAX gives the single task of a node
# only its first GPU.
_MULTI_NODE = """export JAX_LOCAL_DEVICE_IDS=$(seq -s, 0 $((${SLURM_GPUS_ON_NODE:-1} - 1)))
task=$(declare -f relay)'; relay "$@"; exit $((code == 2 ? 255 : code))'
relay srun bash -c "$task" task "${command[@]}"
if [ "$code" -eq 255 ]; then code=2; fi"""


# Options that the script sets where the user gives none of those beside them.
_DEFAULTS = {
    "--gres=gpu:1": (
        *("--gres", "--gpus", "-G", "--gpus-per-node", "--gpus-per-socket", "--gpus-per-task"),
        "--tres-per-task",
    ),
    "--cpus-per-task=4": ("--cpus-per-task", "-c", "--cpus-per-gpu"),
    "--mem=32G": ("--mem", "--mem-per-cpu", "--mem-per-gpu"),
    "--output=%x-%A_%a.log": ("--output", "-o"),
    "--open-mode=append": ("--open-mode",),
}


# Options of sbatch that the script sets itself, to stop tasks in time and queue them again, or from
# options of this command.
_RESERVED = (
    *("--array", "-a", "--signal", "--requeue", "--no-requeue"),
    *("--job-name", "-J", "--nodes", "-N", "--ntasks-per-node", "--time", "-t"),
)


def _name(option: str) -> str:
    """Returns the name of an option: of --mem=4G, --mem 4G, -c 4 and -c4, and of --gre=gpu:4, which
    sbatch reads as --gres."""
    if not option.startswith("--"):
        return option[:2]
    name = re.split("[= ]", option)[0]
    names = [*_RESERVED, "--ntasks", *(alias for group in _DEFAULTS.values() for alias in group)]
    return name if name in names else next((full for full in names if full.startswith(name)), name)


def _sbatch(text: str) -> str:
    """Checks an option of sbatch; raises ArgumentTypeError for one that the script sets itself."""
    if not text.startswith("-") or not text.isprintable() or _name(text) in _RESERVED:
        raise argparse.ArgumentTypeError(
            f"{shortened(text, 60)!r} is not one option of sbatch beside {', '.join(_RESERVED)}: "
            "write it as --sbatch=--partition=gpu"
        )
    return text


OPTIONS = (
    Option(
        "--time TIME",
        "time limit of each task, after which it is queued again",
        runs_file.word(
            r"([0-9]{1,5}-)?[0-9]{1,6}(:[0-9]{1,2}){0,2}",
            "[days-]hours:minutes:seconds, or minutes",
        ),
        default="24:00:00",
    ),
    Option(
        "--at-once N", "most tasks that run at a time; 0: any number", options.integer(0), default=0
    ),
    Option("--nodes N", "nodes of a run, a process on each", options.integer(1), default=1),
    Option("--python PROGRAM", "the program that runs train.py", default=".venv/bin/python"),
    Option(
        "--sbatch OPTION ...",
        "a further option of sbatch, as in --sbatch=--partition=gpu, or one in the place of "
        f"{', '.join(_DEFAULTS)}".replace("%", "%%"),
        _sbatch,
    ),
)


def render(runs: list[Run], arguments: argparse.Namespace) -> str:
    """Renders the script for sbatch.

    Args:
      runs: the runs, a task each.
      arguments: the parsed options.
    """
    is_multi_node = arguments.nodes > 1
    further = ["--processes", "auto"] if is_multi_node else []
    nodes = f"#SBATCH --nodes={arguments.nodes}\n#SBATCH --ntasks-per-node=1\n"
    option_names = {_name(option) for option in arguments.sbatch}
    defaults = [option for option, names in _DEFAULTS.items() if option_names.isdisjoint(names)]
    cases = [
        f"{number}) command=({shlex.join([arguments.python, 'train.py', *run.words, *further])}) ;;"
        for number, run in enumerate(runs)
    ]
    return _SCRIPT.substitute(
        name=arguments.name,
        last=len(runs) - 1,
        at_once=f"%{arguments.at_once}" if arguments.at_once else "",
        time=arguments.time,
        grace=arguments.grace,
        nodes=nodes if is_multi_node else "",
        options="".join(f"#SBATCH {option}\n" for option in (*defaults, *arguments.sbatch)),
        cases="\n".join(cases),
        run=_MULTI_NODE if is_multi_node else _SINGLE_NODE,
        again="|".join(map(str, runs_file.RESUMABLE)),
        restarts=arguments.restarts,
    )


COMMAND = ("sbatch",)  # reads the script from its standard input
