"""Trials from beginning to end: budgets, learning rates, runs of all seeds, and the comparison."""

import contextlib
import math
import pathlib
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from zoo.configuration import changed
from zoo.errors import Diverged
from zoo.experiment import Experiment
from zoo.lab.comparison import learning_curves
from zoo.lab.comparison.learning_curves import BestValidations
from zoo.lab.evaluation import scored_texts
from zoo.lab.evaluation.changes.renormalised import Renormalised
from zoo.lab.evaluation.run import Run, first_test
from zoo.lab.own_text import heads, summary
from zoo.lab.own_text.plan import Budget, HeadPlan, Plan, best_rate, budget_steps
from zoo.lab.runs.workdir import Workdir
from zoo.lab.training import costs, tasks
from zoo.lab.training import train as training
from zoo.lab.training.loop import Trainer
from zoo.optimizers import Constant

# Learning rates are tried for this fraction of a run's steps, and for so many steps at least.
RATE_FRACTION, RATE_STEPS = 10, 20
# Validations within a run, beside the ends of epochs; fewer where they would read more tokens than
# training does.
VALIDATIONS = 10
# Steps are timed for this fraction of a budget of minutes, within these seconds.
TIMED_FRACTION, TIMED_SECONDS = 20, (3.0, 10.0)


class Trials(NamedTuple):
    """The recipe, heads, budget, number of seeds and folder of trials."""

    experiment: Experiment
    names: Sequence[str]
    folder: pathlib.Path
    budget: Budget
    seeds: int


def run_trials(trials: Trials, log: Callable[[str], None] = print) -> summary.Summary:
    """Trains and judges all heads, or resumes that, and writes the comparison after each run; a
    head that diverges is left out."""
    Workdir(trials.folder).permit(trials.experiment)
    plan = Plan(trials.folder, trials.experiment, trials.budget)
    words = heads.count_words(trials.experiment)
    names = [*trials.names] or heads.default_heads(trials.experiment, words)
    heads.check_unique_names(names)
    recipes = {
        heads.short_name(name): heads.head_recipe(name, trials.experiment, words) for name in names
    }
    runs = (
        f"{trials.seeds} run{'' if trials.seeds == 1 else 's'} each of {trials.budget.describe()}"
    )
    in_all = trials.budget.describe_total(len(recipes), trials.seeds, 1 / RATE_FRACTION)
    log(f"{words.size:,} words; heads: {', '.join(recipes)}; {runs}{in_all}")
    failed: dict[str, str] = {}
    for name, experiment in recipes.items():
        with _noting_divergence(name, failed, log):
            _plan_head(name, experiment, plan, trials, log)
    split, start = first_test(trials.experiment), math.log(words.size)
    rounds = [(seed, name) for seed in range(trials.seeds) for name in recipes]
    folders: dict[str, list[pathlib.Path]] = {name: [] for name in recipes}

    def write_comparison():
        comparison = summary.summarise(folders, split, plan, failed, start)
        summary.write_summary(trials.folder, comparison)
        return comparison

    for number, (seed, name) in enumerate(rounds, 1):
        folder = trials.folder / "runs" / f"{name}_{seed}"
        is_new = name not in failed and not any((folder / "results").glob(f"{split}.*.json"))
        if is_new:
            log(f"{name}, seed {seed} (run {number} of {len(rounds)})")
            recipe = final_recipe(recipes[name], plan.heads[name], seed, words.validation_share)
            with _noting_divergence(name, failed, log):
                training.train(recipe, folder, log=log)
                judge_run(folder, split)
        # The other seeds of a head that diverged would be those that did not diverge.
        folders[name] = [] if name in failed else [*folders[name], folder]
        if is_new and any(folders.values()):
            write_comparison()
    return write_comparison()


@contextlib.contextmanager
def _noting_divergence(name: str, failed: dict[str, str], log) -> Iterator[None]:
    """Catches Diverged from the body: logs it, and adds {name: message} to `failed`."""
    try:
        yield
    except Diverged as error:
        failed[name] = str(error)
        log(f"{name} is left out: {error}")


def _plan_head(name, experiment, plan, trials, log):
    """Writes the steps and the learning rate of a head's runs into the plan, after timing steps and
    trying rates, unless it has them."""
    budget = trials.budget
    if name not in plan.heads:
        seconds = 0.0
        if budget.minutes is not None:
            shortest, longest = TIMED_SECONDS
            seconds = min(max(60 * budget.minutes / TIMED_FRACTION, shortest), longest)
        log(f"{name}: compiling and timing a step")
        steady = changed(experiment, {"training.optimizer.schedule": Constant()})
        folder = Workdir(trials.folder / "runs" / name)  # where nothing is written
        folder.permit(steady)
        trainer = Trainer(
            tasks.prepare(steady),
            steady.training,
            folder.path,
            log=lambda line: None,
            init_from=steady.init_from,
            parallel=steady.parallel,
        )
        cost = costs.measure(trainer, seconds)
        steps = budget_steps(budget, cost.seconds, trainer.task.total_steps)
        plan.heads[name] = HeadPlan(steps, trainer.task.epoch_steps, cost.bytes)
        plan.write()
    head_plan = plan.heads[name]
    if head_plan.rate is None:
        if len(budget.rates) > 1:
            for factor in budget.rates:
                _try_rate(name, experiment, factor, plan, trials.folder, log)
        head_plan.rate = best_rate(head_plan.tried, budget.rates)
        plan.write()
    rate = experiment.training.optimizer.learning_rate * head_plan.rate
    log(f"{name}: {head_plan.steps:,} steps a run, learning rate {rate:g}")


def _try_rate(name, experiment, factor, plan, folder, log):
    """Trains a head for a part of its steps with a learning rate, and writes the validation loss,
    inf if it diverges, into the plan; does nothing if the plan has it."""
    head_plan, key = plan.heads[name], f"{factor:g}"
    if key in head_plan.tried:
        return
    steps = min(head_plan.steps, max(RATE_STEPS, head_plan.steps // RATE_FRACTION))
    recipe = heads.scale_rate(heads.shorten_warmup(experiment, steps), factor)
    recipe = changed(recipe, {"training.steps": steps, "training.validate_every": 0})
    rate_folder = folder / "rates" / f"{name}_{key}"
    rate = recipe.training.optimizer.learning_rate
    log(f"{name}: learning rate {rate:g} for {steps:,} step{'' if steps == 1 else 's'}")
    try:
        training.train(recipe, rate_folder, log=lambda line: None)
        fields = learning_curves.FIELDS["step"]
        validations = learning_curves.read_validations(str(rate_folder), fields)
        loss = BestValidations.from_validations([validations]).loss
    except Diverged:
        loss = math.inf
    head_plan.tried[key] = loss
    plan.write()


def final_recipe(
    experiment: Experiment, head_plan: HeadPlan, seed: int, validation_share: float
) -> Experiment:
    """Returns the recipe of a run by the plan; `validation_share`: tokens of the validation text
    for each of training."""
    assert head_plan.rate is not None
    recipe = heads.shorten_warmup(experiment, head_plan.steps)
    # Steps of as many tokens as a validation reads.
    least_interval = math.ceil(validation_share * head_plan.epoch_steps)
    return changed(
        heads.scale_rate(recipe, head_plan.rate),
        {
            "training.steps": head_plan.steps,
            "training.validate_every": max(1, head_plan.steps // VALIDATIONS, least_interval),
            "training.seed": experiment.training.seed + seed,
        },
    )


# -------------------- one run of the trials: an ordinary run folder, judged like any other


def judge_run(folder: pathlib.Path, split: str) -> pathlib.Path:
    """Judges a run on a split by its exact perplexity, saves the passport and returns its path; a
    head that spells is renormalised over the lexicon."""
    run = Run.load(folder)
    if run.experiment.head.spells:
        run = Renormalised().apply(run)
    (scored,) = scored_texts.score(run, [split])
    (file,) = scored.judgement().keep()
    return file
