"""Budgets, and the plan that is kept of them."""

import json
import math

import pytest

from tests.lab.training import small
from zoo.errors import Diverged, UserError
from zoo.lab.own_text.plan import Budget, HeadPlan, Plan, best_rate, budget_steps


def test_minutes_become_steps_of_the_measured_time():
    minute = Budget(minutes=1.0, steps=None)
    assert budget_steps(minute, 0.25, max_steps=1000) == 240
    assert budget_steps(minute, 0.25, max_steps=100) == 100  # all epochs of the recipe
    assert budget_steps(minute, 90.0, max_steps=1000) == 1
    assert budget_steps(Budget(None, 50), None, max_steps=1000) == 50
    assert budget_steps(Budget(None, 50), None, max_steps=7) == 7
    assert (minute.describe(), Budget(None, 5000).describe()) == ("1 minute", "5,000 steps")


def test_the_best_rate_is_the_one_with_the_lowest_loss():
    tried = {"0.3": 5.5, "1": 5.2, "3": math.inf}
    assert best_rate(tried, (0.3, 1.0, 3.0)) == 1.0
    assert best_rate({}, (2.0,)) == 2.0  # nothing is tried
    with pytest.raises(Diverged, match="diverged at each learning rate"):
        best_rate({"1": math.inf, "3": math.inf}, (1.0, 3.0))


def test_a_plan_is_read_again(tmp_path):
    recipe, budget = small.experiment(), Budget(0.5, None, (1.0, 3.0))
    plan = Plan(tmp_path, recipe, budget)
    plan.heads["softmax"] = HeadPlan(120, 429, 10_000, {"1": 4.5, "3": math.inf})
    plan.write()
    assert Plan(tmp_path, recipe, budget).heads == plan.heads


@pytest.mark.parametrize(
    ("recipe", "budget", "difference"),
    [
        (small.experiment(), Budget(None, 5), "minutes: 0.5 against None"),
        (small.experiment(), Budget(0.5, None, (1.0,)), "rates: "),
        (small.experiment(batch=2), Budget(0.5, None, (1.0, 3.0)), "recipe.training.batch: 4"),
    ],
)
def test_another_plan_is_refused(tmp_path, recipe, budget, difference):
    Plan(tmp_path, small.experiment(), Budget(0.5, None, (1.0, 3.0))).write()
    with pytest.raises(UserError, match=rf"has another plan \({difference}"):
        Plan(tmp_path, recipe, budget)


def test_other_files_are_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(UserError, match="exists and holds no trials: give another --output"):
        Plan(tmp_path, small.experiment(), Budget(None, 5))


@pytest.mark.parametrize("field", ["steps", "epoch_steps"])
@pytest.mark.parametrize("value", ["five", 0, -1])
def test_a_malformed_plan_is_named(tmp_path, field, value):
    plan = Plan(tmp_path, small.experiment(), Budget(None, 5))
    plan.heads["softmax"] = HeadPlan(5, 9, None, {}, 1.0)
    plan.write()
    file = tmp_path / "plan.json"
    content = json.loads(file.read_text())
    content["heads"]["softmax"][field] = value
    file.write_text(json.dumps(content))
    with pytest.raises(UserError, match="has a malformed head softmax"):
        Plan(tmp_path, small.experiment(), Budget(None, 5))


def test_the_time_of_all_runs_is_told():
    # 4 heads, 3 seeds, 3 rates for a tenth each: 4 * 10 * 3.3 minutes.
    assert Budget(10.0, None, (0.3, 1.0, 3.0)).describe_total(4, 3, 0.1) == (
        ": at most 2.2 hours of training in all"
    )
    assert Budget(5.0, None).describe_total(2, 1, 0.1) == ": at most 10 minutes of training in all"
    assert Budget(None, 30).describe_total(2, 1, 0.1) == ""
