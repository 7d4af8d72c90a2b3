"""SLURM: an array job, a task for each run.

A task that is about to be stopped, for its time is up or another job has its place, gets SIGTERM
some minutes before. Training then saves its state and leaves with 143, and the task is queued
again; the same command resumes the run. With several nodes a run has a process on each, with all
GPUs of the node.
"""

import argparse
import shlex

from launch import runs_file
from launch.runs_file import Run
from zoo.commands import options
from zoo.errors import shortened

_SCRIPT = """#!/bin/bash
#SBATCH --job-name={name}
#SBATCH --array=0-{last}{at_once}
#SBATCH --time={time}
{nodes}{options}#SBATCH --requeue
#SBATCH --signal=B:TERM@{grace}
#SBATCH --output={name}-%A_%a.log
#SBATCH --open-mode=append
set -u
# Runs a command, passes SIGTERM on to it, and waits until it has saved its state.
relay() {{
  "$@" &
  child=$!
  trap 'kill -TERM "$child" 2>/dev/null' TERM
  wait "$child"; code=$?
  # A signal ends the waiting, not the command.
  while kill -0 "$child" 2>/dev/null; do wait "$child"; code=$?; done
}}
case "$SLURM_ARRAY_TASK_ID" in
{cases}
*) echo "no run $SLURM_ARRAY_TASK_ID" >&2; exit 2 ;;
esac
{run}
case "$code" in {again}) [ "${{SLURM_RESTART_COUNT:-0}}" -lt {restarts} ] &&
  scontrol requeue "${{SLURM_ARRAY_JOB_ID}}_${{SLURM_ARRAY_TASK_ID}}" ;;
esac
exit "$code"
"""
_ONE = 'relay "${command[@]}"'
# srun ends with the greatest exit code of its tasks: when one leaves with 2, a user's error, and
# the others with 75 as they have lost it, 2 has to win. JAX by itself would give the one task of a
# node its first GPU alone.
_SEVERAL = """export JAX_LOCAL_DEVICE_IDS=$(seq -s, 0 $((${SLURM_GPUS_ON_NODE:-1} - 1)))
task=$(declare -f relay)'; relay "$@"; exit $((code == 2 ? 255 : code))'
relay srun bash -c "$task" task "${command[@]}"
if [ "$code" -eq 255 ]; then code=2; fi"""


def add_to(parser: argparse.ArgumentParser):
    """Adds the options of SLURM."""
    add = parser.add_argument
    time = runs_file.word(
        r"([0-9]{1,5}-)?[0-9]{1,6}(:[0-9]{1,2}){0,2}", "[days-]hours:minutes:seconds, or minutes"
    )
    add(
        "--time",
        type=time,
        default="24:00:00",
        help="of each task; it is queued again when it is over",
    )
    add(
        "--at-once",
        type=options.whole(0),
        default=0,
        metavar="N",
        help="tasks that run at a time; 0: any",
    )
    add(
        "--nodes", type=options.whole(1), default=1, metavar="N", help="of a run, a process on each"
    )
    add("--python", default=".venv/bin/python", help="the program that runs train.py")
    add(
        "--sbatch",
        type=_sbatch,
        action="append",
        default=["--gres=gpu:1", "--cpus-per-task=4", "--mem=32G"],
        metavar="OPTION",
        help="a further option of sbatch, as in --sbatch=--partition=gpu; may be repeated",
    )


# Options of sbatch without which a run would not be stopped in time and queued again.
_OWN = ("--array", "-a", "--signal", "--no-requeue")


def _sbatch(text: str) -> str:
    """An option of sbatch on a line of the script."""
    if not text.startswith("-") or not text.isprintable() or text.partition("=")[0] in _OWN:
        raise argparse.ArgumentTypeError(
            f"{shortened(text, 60)!r} is not one option of sbatch beside {', '.join(_OWN)}: write "
            "it as --sbatch=--partition=gpu"
        )
    return text


def render(runs: list[Run], arguments: argparse.Namespace) -> str:
    """The script that sbatch takes."""
    several = arguments.nodes > 1
    further = ["--processes", "auto"] if several else []
    nodes = f"#SBATCH --nodes={arguments.nodes}\n#SBATCH --ntasks-per-node=1\n"
    cases = [
        f"{number}) command=({shlex.join([arguments.python, 'train.py', *run.words, *further])}) ;;"
        for number, run in enumerate(runs)
    ]
    return _SCRIPT.format(
        name=arguments.name,
        last=len(runs) - 1,
        at_once=f"%{arguments.at_once}" if arguments.at_once else "",
        time=arguments.time,
        grace=arguments.grace,
        nodes=nodes if several else "",
        options="".join(f"#SBATCH {option}\n" for option in arguments.sbatch),
        cases="\n".join(cases),
        run=_SEVERAL if several else _ONE,
        again="|".join(map(str, runs_file.AGAIN)),
        restarts=arguments.restarts,
    )


COMMAND = ("sbatch",)  # reads the script from its standard input
