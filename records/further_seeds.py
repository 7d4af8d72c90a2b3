"""The table of the further seeds of two recipes, of which three seeds do not decide."""

import statistics

from records import questions
from records import rows as rows_of
from records.cells import markdown, mean, p_cell
from zoo.lab.evaluation import significance

# Text, recipe, and its opponent, which is decoded under the grammar as the recipe is.
COMPARISONS = (
    ("GeoQuery", "geoquery_attention_constrained", "geoquery_attention"),
    ("Overnight", "overnight_constrained", "overnight"),
)


def table() -> str:
    """Makes the table of the seeds that were run because the first three did not decide."""
    rows, runs = [], []
    for text, recipe, opponent in COMPARISONS:
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
