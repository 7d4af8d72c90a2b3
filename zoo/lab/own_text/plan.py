"""The plan of trials: the budget of each head, which is fixed before its runs begin.

    {"recipe": ..., "minutes": 10, "steps": null, "rates": [...], "heads": {"softmax": {...}}}

A budget of minutes becomes a number of steps by the time of a step, measured once. From then on a
run depends on its steps alone: it can be interrupted, and repeated with --steps to the digit. The
minutes are training steps only, see `zoo.lab.training.loop`.
"""

import dataclasses
import pathlib
from collections.abc import Sequence
from typing import Any

from zoo import configuration
from zoo.base import strict_json
from zoo.errors import Diverged, UserError
from zoo.experiment import Experiment
from zoo.lab.runs import atomic_writes

FILE = "plan.json"
_PLAN = {"recipe": dict, "minutes": float | None, "steps": int | None, "rates": list, "heads": dict}


@dataclasses.dataclass(frozen=True)
class Budget:
    """What each head may be trained for: minutes or steps, and learning rates to try."""

    minutes: float | None  # of training steps; None if steps are given
    steps: int | None  # the number of steps; None if minutes are given
    rates: tuple[float, ...] = (1.0,)

    def describe(self) -> str:
        """Describes the budget of a run: "10 minutes", "5,000 steps"."""
        if self.steps is not None:
            return f"{self.steps:,} step{'' if self.steps == 1 else 's'}"
        return f"{self.minutes:g} minute{'' if self.minutes == 1 else 's'}"

    def describe_total(self, heads: int, seeds: int, rate_share: float) -> str:
        """Describes the most time of all runs as ": at most 2 hours ..."; "" for steps. A rate is
        tried for `rate_share` of a run."""
        if self.minutes is None:
            return ""
        rates = len(self.rates) * rate_share if len(self.rates) > 1 else 0
        minutes = heads * self.minutes * (seeds + rates)
        duration = f"{minutes:.0f} minutes" if minutes < 120 else f"{minutes / 60:.1f} hours"
        return f": at most {duration} of training in all"


@dataclasses.dataclass
class HeadPlan:
    """What the plan fixes for a head: its steps and its learning rate."""

    steps: int
    epoch_steps: int
    bytes: int | None  # memory of a step, see `zoo.lab.training.costs`; None if it is not known
    # {factor of the learning rate: validation log-perplexity, nats}
    tried: dict[str, float] = dataclasses.field(default_factory=dict)
    rate: float | None = None

    def __post_init__(self):
        strict_json.check_least(self.steps, 1, "steps")  # 0 steps would train all epochs
        strict_json.check_least(self.epoch_steps, 1, "epoch_steps")


class Plan:
    """The plan that lies in the folder of the trials."""

    def __init__(self, folder: pathlib.Path, experiment: Experiment, budget: Budget):
        """Reads the plan of a folder, or begins a new plan; raises UserError for another plan, or a
        folder with other files."""
        self._path, self.budget = folder / FILE, budget
        self._head: dict[str, Any] = {
            "recipe": configuration.to_json(experiment),
            "minutes": budget.minutes,
            "steps": budget.steps,
            "rates": [*budget.rates],
        }
        self.heads: dict[str, HeadPlan] = {}
        if self._path.exists():
            self._read()
        elif folder.exists() and any(folder.iterdir()):
            raise UserError(f"{folder} exists and holds no trials: give another --output.")

    def _read(self):
        """Fills `heads` from the file; raises UserError if its recipe or budget is different, or a
        head is malformed."""
        saved_plan = strict_json.read(self._path, _PLAN)
        for name, value in self._head.items():
            difference = configuration.first_difference(saved_plan[name], value, name)
            if difference:
                raise UserError(
                    f"{self._path} has another plan ({difference}): give its settings to "
                    "resume it, or another --output."
                )
        for name, head_plan in saved_plan["heads"].items():
            try:
                self.heads[name] = strict_json.parse(HeadPlan, head_plan, name)
            except ValueError as error:
                raise UserError(
                    f"{self._path} has a malformed head {name} ({error}): remove that head there."
                ) from error

    def write(self):
        """Writes the plan, whole or not at all."""
        text = strict_json.dumps({**self._head, "heads": self.heads}, indent=2) + "\n"
        self._path.parent.mkdir(parents=True, exist_ok=True)
        atomic_writes.write_text(self._path, text)


def budget_steps(budget: Budget, step_seconds: float | None, max_steps: int) -> int:
    """Returns the steps of a budget, from minutes by the seconds of a step; at most `max_steps`."""
    if budget.steps is not None:
        return min(budget.steps, max_steps)
    assert budget.minutes is not None and step_seconds is not None
    return max(1, min(int(60 * budget.minutes / step_seconds), max_steps))


def best_rate(tried: dict[str, float], factors: Sequence[float]) -> float:
    """Returns the factor with the lowest log-perplexity in {factor: log-perplexity}, or the only
    factor, untried; raises Diverged if all are infinite."""
    if len(factors) == 1:
        return factors[0]
    best = min(factors, key=lambda factor: tried[f"{factor:g}"])
    if tried[f"{best:g}"] == float("inf"):
        raise Diverged(
            "training diverged at each learning rate that was tried: give lower factors by --rates."
        )
    return best
