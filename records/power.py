"""How many runs or sentences would tell two recipes apart, by the variance of kept ones."""

import math
import statistics
from typing import NamedTuple

from records import questions
from records import rows as rows_of
from records.cells import figures_of, grid, markdown, mean, origin, p_cell
from zoo.lab.comparison import paired
from zoo.lab.evaluation import significance

POWER = 0.8  # the probability that the test finds the difference
MAX_RUNS = 10_000  # runs a side


class Comparison(NamedTuple):
    """A recipe and its opponent, whose seeds do not decide which is better."""

    text: str
    recipe: str
    opponent: str  # with --constrain, as the recipe is decoded under the grammar


FORMS = (
    Comparison("GeoQuery", "geoquery_constrained", "geoquery"),
    Comparison("GeoQuery", "geoquery_attention_constrained", "geoquery_attention"),
    Comparison("Overnight", "overnight_constrained", "overnight"),
    Comparison("Overnight", "overnight_attention_constrained", "overnight_attention"),
)


def power(difference: float, deviations: tuple[float, float], runs: int) -> float:
    """Computes the probability that Welch's test of two groups of runs has p < 0.05.

    The statistic has a noncentral t distribution, nearly: its noncentrality is d / sqrt((s^2 + r^2)
    / n), its degrees of freedom those of Welch (1947), (n - 1) (s^2 + r^2)^2 / (s^4 + r^4).

    Args:
      difference: d, of the means.
      deviations: s and r, the standard deviations of the runs of each group.
      runs: n, of each group.
    """
    from scipy import stats

    first, second = (deviation**2 for deviation in deviations)
    freedom = (runs - 1) * (first + second) ** 2 / (first**2 + second**2)
    noncentral = difference / math.sqrt((first + second) / runs)
    limit = stats.t.isf(significance.LEVEL / 2, freedom)
    distribution = stats.nct(freedom, noncentral)
    return float(distribution.sf(limit) + distribution.cdf(-limit))


def runs_needed(difference: float, deviations: tuple[float, float]) -> int | None:
    """Finds the fewest runs a side with which the test has `POWER`; None above `MAX_RUNS`."""
    run_counts = (n for n in range(2, MAX_RUNS) if power(difference, deviations, n) >= POWER)
    return next(run_counts, None)


def cautious(deviations: tuple[float, float], runs: int) -> tuple[float, float]:
    """Returns bounds that true standard deviations are below in four of five cases (Browne 1995).

    A deviation s of n runs has the bound s sqrt((n - 1) / q), with q the 0.2 quantile of
    chi-squared with n - 1 degrees of freedom: 2.1 s for three runs.
    """
    from scipy import stats

    factor = math.sqrt((runs - 1) / stats.chi2.ppf(0.2, runs - 1))
    return deviations[0] * factor, deviations[1] * factor


def sentences_needed(difference: float, interval: tuple[float, float], sentences: int) -> int:
    """Computes the sentences of a test with which its difference is found with `POWER`.

    The standard error is that of the 95 % interval, and falls with the root of their number.
    """
    normal = statistics.NormalDist()
    error = (interval[1] - interval[0]) / (2 * normal.inv_cdf(1 - significance.LEVEL / 2))
    required_z = normal.inv_cdf(1 - significance.LEVEL / 2) + normal.inv_cdf(POWER)
    return math.ceil(sentences * (required_z * error / difference) ** 2)


def table() -> str:
    """Makes the table of differences that seeds or sentences do not tell from 0."""
    rows, runs = [], []
    for text, recipe, opponent in FORMS:
        shares, opponent_shares = (_shares(rows_of.FORMS[config]) for config in (recipe, opponent))
        rows.append([text, f"`{recipe}`", *_seed_cells(shares, opponent_shares, ".1f", " points")])
        runs += [*rows_of.FORMS[recipe], *rows_of.FORMS[opponent]]
    adapted, scratch = (figures_of(seeds, "test") for seeds in rows_of.ADAPTATION["5,000"])
    gain = paired.compare_losses(scratch, adapted)
    assert gain is not None
    captions = ["5,000 captions", "from scratch"]
    rows.append([*captions, *_seed_cells(adapted.losses, scratch.losses, ".3f", " nats")])
    needed = sentences_needed(gain.nats, gain.interval, gain.sentences)
    difference = "{:.3f} [{:.3f}, {:.3f}] nats".format(gain.nats, *gain.interval)
    by_sentences = [f"{gain.sentences:,} sentences", p_cell(gain.p), "", f"{needed:,}", ""]
    rows.append([*captions, difference, *by_sentences])
    runs += [run for seeds in rows_of.ADAPTATION["5,000"] for run in seeds]
    header = ["text", "recipe", "better than its opponent by", "of", "p", "power"]
    header += ["needed for a power of 0.8", "with bounds of the deviations"]
    return f"{grid(header, rows)}\n{origin(runs, 'test', spread=False)}"


def further() -> str:
    """Makes the table of the seeds that were run because the first three did not decide."""
    rows, runs = [], []
    for text, recipe, opponent in FORMS:
        if recipe not in rows_of.FORMS_FURTHER:
            continue
        first, later = (
            (runs_by_config[opponent], runs_by_config[recipe])
            for runs_by_config in (rows_of.FORMS, rows_of.FORMS_FURTHER)
        )
        together = tuple((*early, *late) for early, late in zip(first, later, strict=True))
        last = len(together[0]) - 1
        for seeds, groups in {"0 to 2": first, f"3 to {last}": later, "all": together}.items():
            without, trained = (_shares(group) for group in groups)
            gain = statistics.fmean(trained) - statistics.fmean(without)
            intervals = (_interval_of_seeds(trained, without), _interval_of_questions(*groups))
            cells = [mean(shares, ".1f") + " %" for shares in (without, trained)]
            cells += [
                f"{gain:.1f} points",
                *(f"{low:.1f} to {high:.1f}" for low, high in intervals),
            ]
            p = p_cell(significance.seeds_test(trained, without))
            rows.append([f"{text}, `{recipe}`", seeds, *cells, p])
        runs += [run for group in together for run in group]
    header = ["recipe", "seeds", "its opponent", "recipe", "difference"]
    header += ["95 %, by seeds", "95 %, by questions", "p by seeds"]
    return markdown(header, rows, runs, "answers:test")


def _right(runs):
    """Returns which questions runs answer right under the grammar, [runs, questions]."""
    return questions.right(runs, "answers:test", constrained=True)


def _shares(runs):
    return (100 * _right(runs).mean(1)).tolist()


def _interval_of_seeds(model, opponent):
    """Returns the interval of the difference of means, by Welch's test."""
    from scipy.stats import ttest_ind

    test = ttest_ind(model, opponent, equal_var=False)
    return test.confidence_interval(1 - significance.LEVEL)


def _interval_of_questions(opponent_runs, runs):
    """Returns the interval of the difference between means of runs, by bootstrap of questions."""
    gains = 100 * (_right(runs).mean(0) - _right(opponent_runs).mean(0))
    return significance.bootstrap_interval(gains[:, None], lambda sums: sums[..., 0] / len(gains))


def _seed_cells(figures, opponent_figures, form, unit):
    """Returns the cells of a difference between two groups of runs, as many in each."""
    difference = statistics.fmean(figures) - statistics.fmean(opponent_figures)
    deviations = (statistics.stdev(figures), statistics.stdev(opponent_figures))
    runs = len(figures)
    cells = [f"{difference:{form}}{unit}", f"{runs} runs each"]
    cells += [
        p_cell(significance.seeds_test(figures, opponent_figures)),
        f"{power(difference, deviations, runs):.2f}",
    ]
    needed = (runs_needed(difference, by) for by in (deviations, cautious(deviations, runs)))
    return [*cells, *(f"more than {MAX_RUNS:,}" if n is None else f"{n:,}" for n in needed)]
