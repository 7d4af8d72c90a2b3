"""Trains a model: --config NAME DIR [--set FIELD=VALUE ...]."""

import argparse
import contextlib
import json
import logging
import shlex
import sys
from collections.abc import Sequence

from zoo.commands import options, program
from zoo.errors import Interrupted, UserError
from zoo.trust import user_modules


def add_train_to(parser: argparse.ArgumentParser):
    """Adds the options of training."""
    add = parser.add_argument
    add(
        "--config",
        metavar="NAME",
        help="a config of --list, a config file, or a run of a record, FILE.jsonl:RUN",
    )
    options.add_folder_to(parser, "folder of the run; training resumes in a folder that has a run")
    add(
        "--set",
        action="append",
        default=[],
        metavar="FIELD=VALUE",
        help="sets a field of the recipe; may be repeated",
    )
    add(
        "--devices",
        type=options.whole(0),
        default=0,
        help="number of devices that each process uses; default 0: all",
    )
    add("--coordinator", metavar="HOST:PORT", help="address of process 0, for several processes")
    add(
        "--processes",
        type=_count,
        metavar="N",
        help="number of processes; auto: read from SLURM, Open MPI, Kubernetes or a TPU slice",
    )
    add("--process", type=options.whole(0), metavar="I", help="number of this process, from 0")
    add("--list", action="store_true", help="lists the configs and exits")
    add("--show", metavar="NAME", help="prints the whole recipe of a config and exits")


def _count(text: str) -> int | str:
    """Reads the argument of --processes."""
    if text == "auto":
        return text
    try:
        return options.whole(1)(text)
    except argparse.ArgumentTypeError as error:
        raise argparse.ArgumentTypeError(f"{error}, or auto") from error


def run_train(arguments: argparse.Namespace):
    """Resolves the experiment, prepares the data, and trains until the end or an interruption."""
    configs = user_modules.configs()
    if arguments.list:
        for name in configs.names():
            print(f"{name:24} {configs.summary(name)}")
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
    from zoo import distributed
    from zoo.commands import supervisor

    folder = options.folder_of(arguments)
    experiment = configuration.apply_settings(configs.load(arguments.config), arguments.set)
    place = arguments.coordinator, arguments.processes, arguments.process
    if distributed.several(*place) and not supervisor.is_child():
        if code := supervisor.run():
            program.leave(code)
        return
    with distributed.joined(*place):
        distributed.check_alike(
            recipe=json.dumps(configuration.to_json(experiment), sort_keys=True),
            folder=folder,
            version_of_the_code=distributed.code_digest(),
        )
        first = distributed.first()
        told = _choices_told() if first else contextlib.nullcontext()
        with told:
            _train(experiment, folder, arguments.devices)
        if first:
            print(f"evaluate it: {program.command('evaluate')} {shlex.quote(folder)}")


@contextlib.contextmanager
def _choices_told():
    """Prints within its context what Zoo chooses automatically, such as how a head computes
    scores."""
    logger, handler = logging.getLogger("zoo"), logging.StreamHandler(sys.stdout)
    before = logger.level, logger.propagate
    logger.setLevel(logging.INFO)
    logger.propagate = False
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before[0])
        logger.propagate = before[1]


def _train(experiment, folder, devices):
    """Trains an experiment in a folder; prints the recipe before and how to resume it after."""
    from zoo import distributed
    from zoo.runs.workdir import Workdir
    from zoo.training.train import train

    if distributed.first():
        workdir = Workdir(folder)
        workdir.check(experiment)
        print(*_summary_of(experiment, workdir), sep="\n", flush=True)
    try:
        train(experiment, folder, devices=devices)
    except Interrupted as interruption:
        sentence = f"{interruption} To resume: {program.again()}"
        raise Interrupted(sentence, interruption.signal) from None


def _summary_of(experiment, workdir):
    """Returns the recipe in some lines, without the fields that have their defaults."""
    from zoo import configuration
    from zoo.configuration import fields

    parts = ["data", "vocabulary", "model", "training", "evaluation"]
    others = [name for name in fields.changed_fields(experiment) if name not in parts]
    width = max(map(len, [*parts, *others]))
    for name in [*parts, *others]:
        yield f"{name:{width}}  {configuration.brief(getattr(experiment, name))}"
    yield f"{'':{width}}  every other field has its default: {workdir.path / 'experiment.json'}"


def main(words: Sequence[str] | None = None):
    """Runs the script train.py; `words` are its command line, by default the process's own."""
    parser = argparse.ArgumentParser(description=__doc__)
    add_train_to(parser)
    options.add_common_to(parser)
    run_train(options.parse(parser, words))
