"""Learning curves: loss of training and validation against the step, by recipe."""

import math

from zoo.errors import UserError
from zoo.evaluation.reports import validations
from zoo.evaluation.reports.report_html import charts, elements
from zoo.evaluation.reports.report_html.subjects import Recipe, numbered


def section(recipes: list[Recipe]) -> str:
    """Draws the learning curves of recipes in one chart."""
    drawn, left_out, last = [], [], []
    for recipe in recipes:
        of_seeds, missing = [], []
        for subject in recipe.subjects:
            try:
                of_seeds.append(validations.of_run(subject.path, validations.FIELDS["step"]))
            except UserError as error:
                missing.append((subject.name, str(error)))
        left_out += missing if of_seeds else [(recipe.name, missing[0][1])]
        if of_seeds:
            drawn += curves(recipe.number, of_seeds)
            last.append(f"<strong>{elements.text(recipe.name)}</strong>: {_best(of_seeds)}")
    chart = charts.curves(
        drawn,
        "training step",
        "nats per token",
        f"Learning curves. {' '.join(map(_plain, last))}",
        least=0,
    )
    if not chart:
        return elements.all_missing(left_out)
    shown = {curve.run for curve in drawn}
    content = charts.legend(numbered(recipes), shown) + chart
    caption = (
        "Solid with marks: log-perplexity of the validation text. Dashed: the training loss, the "
        "mean over the steps since the validation before; it may count other tokens, and may be "
        "sampled, so compare its course rather than its height. Of several seeds lines are means, "
        "and shades reach from the least to the greatest."
    )
    return charts.figure(content, caption) + elements.items(last) + elements.all_missing(left_out)


def curves(number: int, of_seeds: list[list[dict]]) -> list[charts.Curve]:
    """Returns the curve of validation and the curve of training, means over seeds."""
    validation, training = (
        [validations.points(lines, field=field) for lines in of_seeds]
        for field in (validations.LOSS, validations.TRAINING)
    )
    return [_curve(number, validation), _curve(number, training, dashed=True)]


def _curve(number, seeds, dashed=False):
    x, mean, least, greatest = validations.mean_curve(seeds)
    shade = [*zip(x, least, greatest, strict=True)] if len(seeds) > 1 and not dashed else []
    return charts.Curve(number, [*zip(x, mean, strict=True)], dashed, shade)


def _best(of_seeds):
    """Describes the best validations of the seeds of a recipe."""
    best = [min(lines, key=lambda line: float(line[validations.LOSS])) for lines in of_seeds]
    losses = [float(line[validations.LOSS]) for line in best]
    mean = f"best validation {math.fsum(losses) / len(losses):.4f} nats per token"
    if len(best) == 1:
        (lines,) = of_seeds
        return (
            f"{mean} at step {best[0]['step']:,} of {lines[-1]['step']:,}; number of validations: "
            f"{len(lines):,}."
        )
    steps = ", ".join(f"{line['step']:,}" for line in best)
    return f"{mean}, mean of {min(losses):.4f} to {max(losses):.4f}, at steps {steps}."


def _plain(line):
    return line.replace("<strong>", "").replace("</strong>", "")
