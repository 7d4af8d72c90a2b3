"""Makes the tables of docs/results.md whose passports are kept: python -m records.tables [--check]

Such a table stands between two comments, "table NAME" and "end of table". All of it, and the line
below it on seeds, revisions, machine and date, comes from records/runs; a test makes the tables
again and compares. What else stands on the page has no passports any more.
"""

import argparse
import functools
import pathlib
import re
import statistics

from zoo.commands import program
from zoo.errors import UserError
from zoo.evaluation.perplexity import perplexity_of
from zoo.evaluation.reports.micro_report import PAIRS
from zoo.runs import storage
from zoo.sources.micro.micro import Micro

FOLDER = pathlib.Path(__file__).parent / "runs"
PAGE = pathlib.Path(__file__).parent.parent / "docs" / "results.md"
_TABLE = re.compile(r"(<!-- table (\w+)[^\n]*-->\n).*?(<!-- end of table -->)", re.DOTALL)


def passports(run: str) -> dict[str, dict]:
    """{split: passport} of a record."""
    found = map(storage.read_object, sorted((FOLDER / run / "results").glob("*.json")))
    return {passport["split"]: passport for passport in found}


def mean(values: list[float], form: str) -> str:
    """The mean of the seeds, with the least and the greatest in brackets if there are several."""
    text = format(statistics.fmean(values), form)
    if len(values) > 1:
        text += f" ({min(values):{form}}–{max(values):{form}})"
    return text


def origin(runs: list[str], test: str = "test") -> str:
    """Where figures come from, in one line."""
    found = [passports(run)[test] for run in runs]
    seeds = sorted({passport["training"]["seed"] for passport in found})
    revisions = sorted({passport["training"]["made_with"]["revision"][:7] for passport in found})
    machines = {
        f"{passport['machine']['processor']}, {passport['machine']['cores']} cores"
        for passport in found
    }
    dates = sorted({passport["date"][:10] for passport in found})
    spread = " In brackets the least and the greatest of the seeds." if len(seeds) > 1 else ""
    return (
        f"From the passports in records/runs: seed {', '.join(map(str, seeds))}; revision "
        f"{', '.join(revisions)}; {', '.join(sorted(machines))}; {', '.join(dates)}.{spread}"
    )


def markdown(header: list[str], rows: list[list[str]], runs: list[str], test: str = "test") -> str:
    """A table and the line on its origin."""
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines) + f"\n{origin(runs, test)}\n"


@functools.cache
def language() -> float:
    """The log-perplexity of the micro language's test text by the language itself."""
    micro = Micro()
    corpus = micro.read("test")
    log_prob = sum(map(sum, map(micro.token_log_probs, corpus.sentences)))
    return -log_prob / sum(len(words) + 1 for words in corpus.sentences)  # boundaries are certain


def micro() -> str:
    """The micro language: softmax and log-linear head, three seeds each."""
    loss = language()
    rows = [["the language itself", f"{loss:.4f}", f"{perplexity_of(loss):.2f}", "", ""]]
    names = {name: [f"{name}_{seed}" for seed in range(3)] for name in CONFIGS}
    for name, runs in names.items():
        tests = [passports(run)["test"] for run in runs]
        losses = [passport["figures"]["log_perplexity"] for passport in tests]
        agreement = [passports(run)["pairs:micro-agreement"]["figures"]["accuracy"] for run in runs]
        low, high = tests[0]["figures"]["interval"]
        rows.append(
            [
                f"`{name}`",
                mean(losses, ".4f"),
                f"{perplexity_of(statistics.fmean(losses)):.2f}",
                f"{low:.3f}–{high:.3f}",
                mean([100 * share for share in agreement], ".1f") + " %",
            ]
        )
    header = ["model", "nats per token", "perplexity", "95 % of seed 0, by sentences"]
    header.append(f"agreement, {PAIRS:,} pairs")
    return markdown(header, rows, [run for runs in names.values() for run in runs])


def of_ways(ways: dict[str, tuple[str, ...]], first: str, test: str = "test") -> str:
    """Runs by what differs between them: nats per token, the seeds of each together.

    Args:
      ways: {what differs: runs}.
      first: the name of what differs.
      test: the split that is judged beside validation.
    """
    rows = []
    for how, runs in ways.items():
        found = [passports(run) for run in runs]
        low, high = found[0][test]["figures"]["interval"]
        losses = [
            mean([of_run[split]["figures"]["log_perplexity"] for of_run in found], ".4f")
            for split in ("validation", test)
        ]
        rows.append([how, *losses, f"{low:.3f}–{high:.3f}"])
    several = any(len(runs) > 1 for runs in ways.values())
    interval = "95 %" + " of the first seed" * several + ", by sentences"
    header = [first, "validation", test, interval]
    return markdown(header, rows, [run for runs in ways.values() for run in runs], test)


def micro_training() -> str:
    """Ways to train the log-linear head on the micro language, and its penalty."""
    return of_ways(WAYS, "trained by")


def seeds(name: str, count: int = 3) -> tuple[str, ...]:
    """The records of a run's seeds."""
    return tuple(f"{name}_{seed}" for seed in range(count))


WAYS = {
    "the exact loss": seeds("micro_log_linear"),
    "importance sampling, 100 draws and the target": seeds("micro_importance_target"),
    "the same without the target, as it was before": ("micro_importance",),
    "contrastive divergence, 100 steps": ("micro_contrastive",),
    "the exact loss, 0.001 sum of \\|a\\|": ("micro_penalty_0.001_1",),
    "the exact loss, 0.001 sum of a^2": ("micro_penalty_0.001",),
    "the exact loss, 0.01 sum of a^2": ("micro_penalty_0.01",),
}
# On the first 864 sentences of French: the softmax, tuned, and the log-linear model.
FRENCH_16 = {
    "log-linear, dropout 0.5": ("ll16_d05", "ll16_d05_1"),
    "softmax, background as a fixed bias, dropout 0.5, 8 epochs": ("sm16_bg_d05",),
    "the same, 4 epochs": ("sm16_bg_d05_e4",),
    "the same, dropout 0.65, of inputs 0.5": ("sm16_bg_d065_i05_e4",),
    "that, tied": ("sm16_bg_tied_d065_i05_e4",),
    "softmax without the background, dropout 0.5, 4 epochs": ("sm16_d05_e4",),
}
# What the log-linear model is without a part of what it knows.
FRENCH_WITHOUT = {
    "all: background, words, tags": ("ll16_d05", "ll16_d05_1"),
    "a uniform background": ("ll16_d05_no_background",),
    "no words of their own": ("ll16_d05_no_words",),
    "no tags": ("ll16_d05_no_tags",),
}
# By how many sentences there are.
FRENCH_CURVE = {
    "432, log-linear": ("ll32_d05",),
    "864, log-linear": ("ll16_d05", "ll16_d05_1"),
    "1,728, log-linear": ("ll8_d05",),
    "432, softmax with the background, 4 epochs": ("sm32_bg",),
    "864, softmax with the background, 4 epochs": ("sm16_bg_d05_e4",),
    "1,728, softmax with the background, 4 epochs": ("sm8_bg",),
}
CONFIGS = ("micro_log_linear", "micro_softmax")
TABLES = {
    "micro": micro,
    "micro_training": micro_training,
    "french_16": functools.partial(of_ways, FRENCH_16, "of 864 sentences"),
    "french_without": functools.partial(of_ways, FRENCH_WITHOUT, "what it knows of words"),
    "french_curve": functools.partial(of_ways, FRENCH_CURVE, "sentences"),
}


def with_tables(page: str) -> str:
    """The page with its tables made anew.

    Raises:
      UserError: it has not each of the tables once.
    """
    names = [match[1] for match in _TABLE.findall(page)]
    if sorted(names) != sorted(TABLES):
        raise UserError(f"the page has the tables {names}, not {[*TABLES]}: put the comments back.")
    return _TABLE.sub(lambda match: f"{match[1]}\n{TABLES[match[2]]()}\n{match[3]}", page)


def main():
    """The program."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="writes nothing; fails if they differ")
    page = PAGE.read_text(encoding="utf-8")
    made = with_tables(page)
    if made == page:
        return
    if parser.parse_args().check:
        raise UserError(f"{PAGE.name} has other tables than records make: run make tables.")
    PAGE.write_text(made, encoding="utf-8")


if __name__ == "__main__":
    program.program(main)
