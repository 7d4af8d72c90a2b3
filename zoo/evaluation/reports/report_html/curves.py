"""Learning curves: loss of training and validation against the step, from metrics.jsonl."""

import os

from zoo.errors import UserError
from zoo.evaluation.reports import validations
from zoo.evaluation.reports.report_html import charts, elements
from zoo.evaluation.reports.report_html.subjects import Subject

# Fields of a line of metrics.jsonl that reports a validation.
VALIDATION = {"step": int, "epoch": int | None, "validation_log_perplexity": float}
_LOSS = "epoch_training_loss"


def section(subjects: list[Subject]) -> str:
    """Draws the learning curves of runs in one chart.

    Args:
      subjects: the runs.
    """
    drawn, left_out, last = [], [], []
    for subject in subjects:
        try:
            lines = _lines(subject)
        except UserError as error:
            left_out.append((subject.name, str(error)))
            continue
        drawn += curves(subject.number, lines)
        best = min(lines, key=lambda line: float(line["validation_log_perplexity"]))
        last.append(
            f"<strong>{elements.text(subject.name)}</strong>: best validation "
            f"{float(best['validation_log_perplexity']):.4f} nats per token at step "
            f"{best['step']:,} of {lines[-1]['step']:,}; number of validations: {len(lines):,}."
        )
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
    names = [subject.name for subject in subjects]
    content = charts.legend(names, shown) + chart
    caption = (
        "Solid with marks: log-perplexity of the validation text. Dashed: the training loss, the "
        "mean over the steps since the validation before; it may count other tokens, and may be "
        "sampled, so compare its course rather than its height."
    )
    return charts.figure(content, caption) + elements.items(last) + elements.all_missing(left_out)


def curves(number: int, lines: list[dict]) -> list[charts.Curve]:
    """Returns the curve of validation and the curve of training.

    Args:
      number: of the run.
      lines: of `validations`.
    """
    validation = [(line["step"], float(line["validation_log_perplexity"])) for line in lines]
    training = [(line["step"], float(line[_LOSS])) for line in lines if _LOSS in line]
    return [charts.Curve(number, validation), charts.Curve(number, training, dashed=True)]


def _lines(subject):
    if subject.metrics is None:
        raise UserError(subject.no_run)
    if not subject.metrics.exists():
        raise UserError(
            f"{os.path.basename(subject.metrics)} is not in {subject.path}; exports do not keep it."
        )
    lines = validations.read(subject.metrics, VALIDATION)
    if not lines:
        raise UserError("nothing has been validated yet: train it further.")
    return lines


def _plain(line):
    return line.replace("<strong>", "").replace("</strong>", "")
