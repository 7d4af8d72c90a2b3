"""Trains a model: --config NAME DIR [--set FIELD=VALUE ...]."""

import argparse
import contextlib
import ctypes
import json
import logging
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator

from zoo.base.trust import user_modules
from zoo.errors import LOST, Interrupted, UserError
from zoo.lab.commands import options, program
from zoo.lab.commands.options import Option


def _count(text: str) -> int | str:
    """Parses the argument of --processes."""
    if text == "auto":
        return text
    try:
        return options.integer(1)(text)
    except argparse.ArgumentTypeError as error:
        raise argparse.ArgumentTypeError(f"{error}, or auto") from error


TRAIN = (
    Option("--config NAME", "a config of --list, a config file, or a record's FILE.jsonl:RUN"),
    Option("folder [DIR]", "folder of the run; training resumes in a folder that has a run"),
    options.SET,
    Option(
        "--compile-for TARGET",
        "compiles for a TPU slice or GPUs, as v5e:2x4 or H100:8, trains nothing, and prints the "
        "memory, collectives and least time of a step",
    ),
    Option(
        "--words N",
        "with --compile-for: reads no text, and takes a vocabulary of N words",
        options.integer(3),
        rules="--words needs --compile-for TARGET",
    ),
    Option("--devices N", "devices that each process uses; 0: all", options.integer(0), default=0),
    Option("--coordinator HOST:PORT", "address of process 0, for several processes"),
    Option(
        "--processes N",
        "number of processes; auto: read from SLURM, Open MPI, Kubernetes or a TPU slice",
        _count,
    ),
    Option("--process I", "number of this process, from 0", options.integer(0)),
    Option("--list", "lists the configs and exits"),
    Option("--show NAME", "prints the whole recipe of a config and exits"),
)


def run_train(arguments: argparse.Namespace):
    """Resolves the experiment, prepares the data, and trains until the end or an interruption."""
    configs = user_modules.configs()
    if arguments.list:
        print(*configs.table(), sep="\n")
        return
    from zoo import configuration

    if arguments.show:
        recipe = configuration.apply_settings(configs.load(arguments.show), arguments.set)
        print(configuration.describe(recipe))
        return
    if not arguments.config:
        raise UserError(
            "give --config NAME and the folder of the run, as in "
            f"{program.command('train')} --config micro_softmax runs/first; --list; or "
            "--show NAME."
        )
    if arguments.compile_for:
        experiment = configuration.apply_settings(configs.load(arguments.config), arguments.set)
        for line in _compile(experiment, arguments.compile_for, arguments.words):
            print(line, flush=True)
        return
    if not arguments.folder:
        raise UserError("no run is named: give its folder, as in runs/first.")
    from zoo.base import distributed

    folder = arguments.folder
    experiment = configuration.apply_settings(configs.load(arguments.config), arguments.set)
    place = arguments.coordinator, arguments.processes, arguments.process
    if distributed.is_multiprocess(*place) and _CHILD not in os.environ:
        code = _supervise()
        if code:
            program.leave(code)
        return
    with distributed.connect(*place):
        from zoo.lab.runs.workdir import Workdir
        from zoo.lab.training.train import train

        distributed.check_same_texts(
            recipe=json.dumps(configuration.to_json(experiment), sort_keys=True),
            folder=folder,
            version_of_the_code=distributed.code_digest(),
        )
        first = distributed.is_first_process()
        if first:
            workdir = Workdir(folder)
            workdir.check(experiment)
            print(*_summary_lines(experiment, workdir), sep="\n", flush=True)
        try:
            with _print_choices() if first else contextlib.nullcontext():
                train(experiment, folder, devices=arguments.devices)
        except Interrupted as interruption:
            sentence = f"{interruption} To resume: {program.command_line()}"
            raise Interrupted(sentence, interruption.signal) from None
        if first:
            print(f"evaluate it: {program.command('evaluate')} {shlex.quote(folder)}")


def _compile(experiment, name, words) -> Iterator[str]:
    """Compiles an experiment for a target; yields lines to print."""
    from zoo.lab.training import compile_for, step_shapes

    target = compile_for.Target.from_text(name)
    lexicon = step_shapes.ranked_lexicon(words) if words else experiment.build()[0]
    return compile_for.describe(experiment, lexicon, target)


@contextlib.contextmanager
def _print_choices():
    """Prints Zoo's automatic choices within its context, such as how a head computes scores."""
    logger, handler = logging.getLogger("zoo"), logging.StreamHandler(sys.stdout)
    previous = logger.level, logger.propagate
    logger.setLevel(logging.INFO)
    logger.propagate = False
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(previous[0])
        logger.propagate = previous[1]


def _summary_lines(experiment, workdir):
    """Yields the lines of a recipe, without the fields that have their defaults."""
    from zoo import configuration
    from zoo.configuration import fields

    parts = ["data", "vocabulary", "model", "training", "evaluation"]
    further_parts = [name for name in fields.changed_fields(experiment) if name not in parts]
    width = max(map(len, [*parts, *further_parts]))
    for name in [*parts, *further_parts]:
        yield f"{name:{width}}  {configuration.brief(getattr(experiment, name))}"
    yield f"{'':{width}}  every other field has its default: {workdir.path / 'experiment.json'}"


# ------------- a parent process of each of several training processes, which reports how it ended
# JAX ends a process by abort() as soon as another process is gone: no Python code of the process
# runs then, and only a trace of C++ is printed.

# Set for the process that trains.
_CHILD = "ZOO_SUPERVISED"
_PR_SET_PDEATHSIG = 1
# Words that JAX's coordination prints before it ends a process, followed by a trace of C++.
_NOISE = ("JAX distributed service", "oordination service", "oordination_service")
_SIGNALS = ("SIGTERM", "SIGINT", "SIGHUP")


def _supervise() -> int:
    """Runs this program again as a child and returns its exit code, LOST for an abort by JAX."""
    child = subprocess.Popen(
        [sys.executable, *sys.orig_argv[1:]],
        env={**os.environ, _CHILD: "1"},
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,  # signals of a terminal come once, from here
        preexec_fn=_end_with_parent(),
    )
    for name in _SIGNALS:
        number = getattr(signal, name)
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, lambda number, frame: child.send_signal(number))
    has_error, noise = False, ""
    assert child.stderr is not None
    for line in child.stderr:
        is_error = line.startswith("error: ")
        has_error |= is_error
        if not is_error and (noise or any(text in line for text in _NOISE)):
            noise += line
        else:
            sys.stderr.write(line)
            sys.stderr.flush()
    code = child.wait()
    if code != -signal.SIGABRT:
        return code if code >= 0 else 128 - code
    meeting = "RegisterTask" in noise
    if not has_error:
        status = noise.partition("absl::Status: ")[2].partition("\n")[0][:200]
        reason, remedy = _NEVER_MET if meeting else _LOST
        print(f"error: {reason} ({status}): {remedy}", file=sys.stderr)
    return 2 if meeting else LOST


_NEVER_MET = (
    "the processes of this run do not meet",
    "start all of them with the same --coordinator and --processes, each with its own --process.",
)
_LOST = (
    "another process of this run has ended, or cannot be reached any more",
    "give the same command to all processes again; the run resumes from its last checkpoint.",
)


def _end_with_parent():
    """Returns a function that makes Linux kill the child with its parent; None elsewhere."""
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None).prctl  # found before the fork, after which little is safe
    return lambda: prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
