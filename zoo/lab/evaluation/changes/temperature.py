"""A temperature of a trained model's probabilities, which calibrates them.

Guo, Pleiss, Sun and Weinberger, "On calibration of modern neural networks" (2017), section 4.2. At
the temperature T > 0,

    p'(x | h) is proportional to p(x | h)^(1/T)

over the words of the lexicon. A model that is too sure of itself has its best T above 1. T is one
number, set on validation text: the log-likelihood of a text is concave in 1/T.
"""

import dataclasses
import math

import jax
import jax.numpy as jnp

from zoo.errors import UserError
from zoo.heads.head import Head
from zoo.heads.head_around import HeadAround, nested
from zoo.lab.evaluation.changes.change import Change
from zoo.lab.options import Option, number

# The temperatures that the search considers, and its precision in log T.
LOWEST, HIGHEST, PRECISION = 0.05, 20.0, 1e-4
_NUMBER = number(1e-3, 1e3)


@dataclasses.dataclass(frozen=True)
class Tempered(HeadAround):
    """p' of a trained head; its tables have T, so that one program serves all temperatures."""

    head: Head
    temperature: float

    @property
    def background(self):  # type: ignore[override]
        return self.head.background

    def _with_background(self, tables, lexicon):
        background = {name: tables[name] for name in ("background",) if name in tables}
        return {"head": tables, "temperature": jnp.asarray(self.temperature), **background}

    def _log_prob_and_log_z(self, params, tables, hidden, targets, context, prepared):
        arguments = params, tables["head"], hidden, targets
        options = {"context": context, "prepared": prepared}
        _, log_z = self.head.log_prob_and_log_z(*arguments, **options)
        temperature = tables["temperature"]
        return self.head.log_prob(*arguments, temperature=temperature, **options), log_z

    def _log_probs(self, params, tables, hidden, context, prepared):
        options = {"context": context, "prepared": prepared}
        log_probs = self.head.log_probs(params, tables["head"], hidden, **options)
        return jax.nn.log_softmax(log_probs / tables["temperature"])


@dataclasses.dataclass(frozen=True)
class Temperature(Change):
    """Probabilities of words to the power of 1/T, divided by their sum."""

    temperature: float
    tuned_on: str | None = None  # the split that gave it

    name = "temperature"
    options = (
        Option(
            "--temperature tune|NUMBER",
            "takes probabilities to the power of 1/NUMBER, divided by their sum over the lexicon; "
            "tune sets it on validation",
            lambda text: math.nan if text == "tune" else _NUMBER(text),
        ),
    )
    apart = True
    title = "at another temperature"

    @classmethod
    def from_arguments(cls, arguments, run):
        temperature = arguments.temperature
        return tune(run) if math.isnan(temperature) else cls(temperature)

    def apply(self, run):
        model = run.experiment.model
        for head in nested(run.experiment.head):
            if head.spells and not head.renormalised:
                raise UserError(
                    f"a {type(head).__name__} spells words and has no list of them all, whose "
                    "probabilities a temperature could change: give --renormalise, too, or leave "
                    "--temperature out."
                )
        head = Tempered(run.experiment.head, self.temperature)
        return run.with_change(self, dataclasses.replace(model, head=head))

    @property
    def sentence(self):
        return f"probabilities to the power of 1/{self.temperature:g}, divided by their sum"

    @property
    def note(self):
        tuned = self.tuned_on is not None
        return f"temperature: {self.temperature:g}, set on {self.tuned_on}" if tuned else None


def tune(run) -> Temperature:
    """Returns the temperature of the lowest log-perplexity on validation, by Brent's method."""
    from scipy import optimize  # half a second, which few commands need

    corpus = run.read("validation")
    changed = Temperature(1.0).apply(run)

    def loss(log_temperature):
        head = {**changed.tables["head"], "temperature": jnp.asarray(math.exp(log_temperature))}
        tempered = dataclasses.replace(changed, tables={**changed.tables, "head": head})
        return tempered.score_corpus(corpus)[1].log_perplexity

    bounds, options = (math.log(LOWEST), math.log(HIGHEST)), {"xatol": PRECISION}
    best = optimize.minimize_scalar(loss, bounds=bounds, method="bounded", options=options)
    if not math.isfinite(best.fun):
        raise UserError(
            "the validation text has words of probability 0, so no temperature is set on it: give "
            "--temperature NUMBER."
        )
    return Temperature(float(f"{math.exp(best.x):.4g}"), "validation")
