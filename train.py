"""Trains a model: python train.py --config NAME --workdir DIR [--set field=value ...]"""

import argparse
import logging
import shlex
import sys

import configs
from zoo import recipes
from zoo.commands import options, program
from zoo.errors import Interrupted
from zoo.runs import made_with
from zoo.runs.workdir import Workdir
from zoo.training import tasks
from zoo.training.loop import Trainer


def main():
    """Resolves the experiment, prepares the data, and trains until the end or an interruption."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", help="a name of --list, or the path of a config file")
    parser.add_argument("--workdir", help="folder of the run; one that was begun is resumed")
    parser.add_argument(
        "--set", action="append", default=[], metavar="FIELD=VALUE", help="changes one field"
    )
    parser.add_argument("--devices", type=int, default=0, help="local devices to use (0: all)")
    parser.add_argument("--list", action="store_true", help="lists the configs and leaves")
    parser.add_argument("--show", metavar="NAME", help="prints the whole recipe of a config")
    options.add_common_to(parser)
    arguments = options.parse(parser)
    if arguments.list:
        for name in configs.names():
            print(f"{name:24} {configs.summary(name)}")
        return
    if arguments.show:
        recipe = recipes.apply_settings(configs.load(arguments.show), arguments.set)
        print(recipes.describe(recipe))
        return
    if not arguments.config or not arguments.workdir:
        parser.error("give --config NAME and --workdir DIR, --list, or --show NAME")

    # What the zoo chooses by itself, such as the form of a head's scores.
    logger = logging.getLogger("zoo")
    logger.setLevel(logging.INFO)
    logger.addHandler(logging.StreamHandler(sys.stdout))
    logger.propagate = False
    experiment = recipes.apply_settings(configs.load(arguments.config), arguments.set)
    workdir = Workdir(arguments.workdir)
    workdir.check(experiment)
    print(recipes.describe(experiment), flush=True)
    task = tasks.prepare(experiment, arguments.devices)
    trainer = Trainer(
        task,
        experiment.training,
        workdir.path,
        arguments.devices,
        init_from=experiment.init_from,
    )
    print(trainer.summary(), flush=True)
    # Not before all this has gone well: a mistake corrected is no other experiment.
    workdir.claim(experiment)
    workdir.keep_lexicons(task.lexicons)
    if workdir.texts() is None:  # what is not to be read again when it resumes
        made = {"revision": made_with.revision(), "versions": made_with.versions()}
        if (seen := task.seen_texts(made)) is not None:
            workdir.keep_texts(seen)
    try:
        trainer.train()
    except Interrupted as interruption:
        command = shlex.join(["python", *sys.argv])
        raise Interrupted(f"{interruption} To resume: {command}", interruption.signal) from None
    print(f"evaluate it: python evaluate.py --workdir {arguments.workdir}")


if __name__ == "__main__":
    program.program(main)
