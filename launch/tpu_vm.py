"""Cloud TPU: a slice for each run, made anew when it is taken away, and deleted at the end."""

import argparse
import shlex

from launch import runs_file, tpus
from launch.runs_file import Run
from zoo.commands import options
from zoo.errors import UserError

_SCRIPT = """#!/bin/bash
# A machine for each run, side by side; logs are {name}-N.log.
set -u
run() {{  # number, command on the machine
  local machine={name}-$1 tpu=(gcloud compute tpus tpu-vm) where=(--zone={zone}) code state
  local ssh=("${{where[@]}}"{workers})
  while true; do
    until "${{tpu[@]}}" create "$machine" "${{where[@]}}" --accelerator-type={accelerator} \\
      --version={runtime} {spot}; do sleep 300; done
    "${{tpu[@]}}" ssh "$machine" "${{ssh[@]}}" --command={setup} \\
      && "${{tpu[@]}}" ssh "$machine" "${{ssh[@]}}" --command="$2"
    code=$?
    state=$("${{tpu[@]}}" describe "$machine" "${{where[@]}}" --format='value(state)')
    "${{tpu[@]}}" delete "$machine" "${{where[@]}}" --quiet
    # It is there, so training ended by itself, well or not; else it was taken away: once more.
    if [ "$state" = READY ]; then return "$code"; fi
  done
}}
{runs}
failed=0
for job in $(jobs -p); do wait "$job" || failed=1; done
exit $failed
"""


def add_to(parser: argparse.ArgumentParser):
    """Adds the options of Cloud TPU."""
    add = parser.add_argument
    zone = runs_file.word(r"[a-z][a-z0-9-]*", "a zone of small letters, digits and -")
    add("--zone", type=zone, required=True, help="such as us-west4-a")
    add("--repository", required=True, metavar="URL", help="of this project, for git clone")
    add("--tpu", choices=tpus.SLICES, default="v5e")
    add("--chips", type=options.whole(1), default=4, help="of a run; from 16, 4 on each host")
    add("--on-demand", action="store_true", help="machines that are not taken away, at their price")


def render(runs: list[Run], arguments: argparse.Namespace) -> str:
    """The script that bash runs."""
    kind, _, hosts = tpus.find(arguments.tpu, arguments.chips)
    lost = [run.folder for run in runs if "://" not in run.folder or run.folder.startswith("file:")]
    if lost:
        raise UserError(
            f"{lost[0]} is a folder of the machine, which is deleted at the end: give one in a "
            "bucket, as in gs://bucket/run."
        )
    setup = (
        f"git clone {shlex.quote(arguments.repository)} zoo && cd zoo && make .venv/installed "
        "&& .venv/bin/pip install -q 'jax[tpu]'"
    )
    lines = []
    for number, run in enumerate(runs):
        command = f"cd zoo && exec {shlex.join(['.venv/bin/python', 'train.py', *run.words])}"
        log = f"{arguments.name}-{number}.log"
        lines.append(f"run {number} {shlex.quote(command)} >> {shlex.quote(log)} 2>&1 &")
    return _SCRIPT.format(
        name=shlex.quote(arguments.name),
        zone=shlex.quote(arguments.zone),
        accelerator=f"{kind.cloud}-{arguments.chips}",
        runtime=kind.runtime,
        # Each host has a process, and finds in its metadata which.
        workers=" --worker=all" if hosts > 1 else "",
        spot="" if arguments.on_demand else "--spot",
        setup=shlex.quote(setup),
        runs="\n".join(lines),
    )


COMMAND = ("bash",)
