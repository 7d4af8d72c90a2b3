"""Makes the tables of README, docs/results.md and docs/results/: python -m records.tables [--check]

Such a table stands between two comments, "table NAME" and "end of table". All of it, and the line
below it on seeds, revisions, machine and date, comes from records/*.jsonl; a test makes the tables
again and compares.
"""

import argparse
import functools
import json
import pathlib
import re
import statistics
from collections.abc import Callable, Mapping

import numpy as np

from records import (
    chinese_lists,
    claims,
    french,
    penn_treebank,
    power,
    questions,
    translation_lists,
    translations,
)
from records import rows as rows_of
from records.cells import FOLDER, every_run, grid, loss, markdown, mean, passports, provenance_line
from zoo.commands import program
from zoo.comparison.micro_report import PAIRS
from zoo.errors import UserError
from zoo.evaluation import significance
from zoo.evaluation.perplexity import perplexity_of
from zoo.rescoring.bleu_chrf_wer import WordErrorRate
from zoo.sources.micro import Micro

DOCS = pathlib.Path(__file__).parent.parent / "docs"
PAGES = [DOCS.parent / "README.md", DOCS / "results.md", *sorted((DOCS / "results").glob("*.md"))]
DIVERGED = 10.0  # nats a token above the best rate, more than a uniform guess loses
_TABLE = re.compile(r"(<!-- table (\w+)[^\n]*-->\n).*?(<!-- end of table -->)", re.DOTALL)


@functools.cache
def language() -> float:
    """Computes the log-perplexity of the micro language's test text by the language itself."""
    micro = Micro()
    corpus = micro.read("test")
    log_prob = sum(map(sum, map(micro.grammar.token_log_probs, corpus.sentences)))
    return -log_prob / sum(len(words) + 1 for words in corpus.sentences)  # boundaries are certain


def micro() -> str:
    """Makes the table of the micro language: softmax and log-linear head, three seeds each."""
    own = language()
    rows = [["the language itself", f"{own:.4f}", f"{perplexity_of(own):.2f}", "", ""]]
    names = {name: [f"{name}_{seed}" for seed in range(3)] for name in rows_of.CONFIGS}
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


def of_ways(ways: Mapping[str, tuple[str, ...]], first: str, test: str = "test") -> str:
    """Makes a table of runs by their difference: nats per token, the seeds of each together.

    Args:
      ways: {the difference: runs}.
      first: the header of the differences.
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


def at_rates(heads: Mapping[str, tuple[str, tuple[str, ...]]]) -> str:
    """Makes a table of heads, each at its best learning rate.

    That is the rate that was repeated with more seeds, or else is best on validation. A column
    shows by how much other rates are worse with the same seed, the first.

    Args:
      heads: {head: (the name of its runs but for rate and seed, rates)}.
    """
    rows, all_runs = [], []
    for head, (name, rates) in heads.items():
        runs = {
            rate: [run for run in rows_of.seeds(f"{name}_{rate}") if run in every_run()]
            for rate in rates
        }
        rates = [rate for rate in rates if runs[rate]]
        losses = {
            (rate, split): [loss(run, split) for run in of_rate]
            for rate, of_rate in runs.items()
            for split in ("validation", "test")
        }
        first = {rate: losses[rate, "validation"][0] for rate in rates}
        best = min(rates, key=lambda rate: (-len(runs[rate]), first[rate]))
        worse = {rate: first[rate] - first[best] for rate in rates if rate != best}
        others = (
            f"{nats:.3f} at {rate}" if nats < DIVERGED else f"diverged at {rate}"
            for rate, nats in worse.items()
        )
        rows.append(
            [
                f"{head}, rate {best}",
                *(mean(losses[best, split], ".4f") for split in ("validation", "test")),
                format(perplexity_of(statistics.fmean(losses[best, "test"])), ".1f"),
                ", ".join(others),
                f"{passports(runs[best][0])['test']['parameters']:,}",
            ]
        )
        all_runs += [run for of_rate in runs.values() for run in of_rate]
    header = ["head", "validation", "test", "perplexity of the test", "worse on validation, seed 0"]
    return markdown([*header, "parameters"], rows, all_runs)


def micro_training() -> str:
    """Makes the table of ways to train the log-linear head on the micro language."""
    return of_ways(rows_of.WAYS, "trained by")


def precision() -> str:
    """Makes the table of recipes trained with products in float32 and in bfloat16."""
    rows, runs = [], []
    for text, (name, tests) in rows_of.PRECISION.items():
        for split in ("validation", *tests):
            row = [f"{text}, {split}"]
            for compute in ("float32", "bfloat16"):
                found = rows_of.seeds(f"{name}_{compute}")
                row.append(mean([loss(run, split) for run in found], ".4f"))
                runs += found
            rows.append(row)
    return markdown(["text", "float32", "bfloat16"], rows, [*dict.fromkeys(runs)], "validation")


def domains() -> str:
    """Makes the table of captions in Czech and news, drawn by weights and judged on both tests."""
    rows = []
    splits = ("validation", "captions.test", "news.test")
    for how, runs in rows_of.CZECH_DOMAINS.items():
        low, high = passports(runs[0])["captions.test"]["figures"]["interval"]
        losses = (mean([loss(run, split) for run in runs], ".4f") for split in splits)
        rows.append([how, *losses, f"{low:.3f}–{high:.3f}"])
    header = ["captions to news", "validation, captions", "test, captions", "test, news"]
    header.append("95 % of captions, seed 0, by sentences")
    every = [run for runs in rows_of.CZECH_DOMAINS.values() for run in runs]
    return markdown(header, rows, every, "captions.test")


def languages() -> str:
    """Makes the table of French and Czech in one model of letters, and of each alone."""
    rows = []
    splits = ("french.validation", "french.test1", "czech.validation", "czech.test")
    for how, runs in rows_of.TWO_LANGUAGES.items():
        judged = passports(runs[0])
        losses = (
            mean([loss(run, split) for run in runs], ".4f") if split in judged else ""
            for split in splits
        )
        rows.append([how, *losses])
    header = ["trained on", "French, validation", "test1", "Czech, validation", "test"]
    every = [run for runs in rows_of.TWO_LANGUAGES.values() for run in runs]
    return markdown(header, rows, every, "validation")


def adaptation() -> str:
    """Makes the table of captions by a model over a background of news, and from scratch."""
    rows, runs = [], []
    for captions, (adapted, scratch) in rows_of.ADAPTATION.items():
        row = [captions]
        for of_model in (adapted, scratch):
            losses = [loss(run, "test") for run in of_model]
            perplexity = f"{perplexity_of(statistics.fmean(losses)):.1f}" if losses else ""
            row += [mean(losses, ".3f") if losses else "", perplexity]
            runs += of_model
        rows.append(row)
    header = ["captions", "over the background", "perplexity", "from scratch", "perplexity"]
    return markdown(header, rows, runs)


def speech() -> str:
    """Makes the table of the language models of the recogniser's lists."""
    rows, runs = [], []
    for model, of_model in rows_of.SPEECH.items():
        losses = [loss(run, "validation") for run in of_model]
        perplexity = f"{perplexity_of(statistics.fmean(losses)):.1f}"
        parameters = f"{passports(of_model[0])['validation']['parameters']:,}"
        rows.append([model, mean(losses, ".4f"), perplexity, parameters])
        runs += of_model
    header = ["model", "validation", "perplexity", "parameters"]
    return markdown(header, rows, runs, "validation")


def speech_lists() -> str:
    """Makes the table of word error rates of the recogniser's lists, re-ranked by each run."""
    kept = json.loads((FOLDER / "speech_lists.json").read_text())
    metric = WordErrorRate()
    of = {
        name: np.array(
            [[count, 0, 0, words] for count, words in zip(errors, kept["words"], strict=True)]
        )
        for name, errors in {**kept["chosen"], "untuned": kept["untuned"]}.items()
    }

    def rate(name):
        low, high = significance.bootstrap_interval(of[name], metric.figure)
        return f"{metric.figure(of[name].sum(0)):.2f} [{low:.2f}, {high:.2f}]"

    rows = []
    for model, runs in {"none": ["none"], **rows_of.SPEECH}.items():
        tests = (significance.paired_test(of["untuned"], of[run], metric.figure) for run in runs)
        cells = [f"{rate(run)}, p = {p:.3f}" for run, p in zip(runs, tests, strict=True)]
        rows.append([model, *cells, *[""] * (3 - len(cells))])
    oracle = 100 * sum(kept["oracle"]) / sum(kept["words"])
    return (
        f"{grid(['model', 'seed 0', 'seed 1', 'seed 2'], rows)}\nUntuned {rate('untuned')}; the "
        f"oracle has {oracle:.2f}. From records/speech_lists.json, by python -m "
        f"records.word_errors: {len(kept['words'])} utterances; {provenance_line(kept)}"
    )


TABLES: dict[str, Callable[[], str]] = {
    "claims": claims.losses,
    "accuracies": claims.accuracies,
    "micro": micro,
    "micro_training": micro_training,
    "captions": translations.scores,
    "captions_lengths": translations.by_length,
    "captions_lists": translations.lists,
    "czech": functools.partial(of_ways, rows_of.CZECH, "trigrams"),
    "lm1b": functools.partial(at_rates, rows_of.LM1B),
    "lm1b_full": penn_treebank.full_vocabulary,
    "czech_domains": domains,
    "two_languages": languages,
    "ptb_heads": functools.partial(at_rates, rows_of.PTB_HEADS),
    "ptb_awd": penn_treebank.awd,
    "ptb_variants": functools.partial(
        penn_treebank.variants,
        "ptb_variants.json",
        "seed 0, of rows with brackets also 1, of the first recipe also 2 (in brackets the least "
        "and the greatest)",
    ),
    "ptb_left_out": functools.partial(penn_treebank.variants, "ptb_left_out.json", "seed 0"),
    "ptb_strong": penn_treebank.strong_heads,
    "front_page": penn_treebank.front_page,
    "ptb_forty": penn_treebank.forty_epochs,
    "precision": precision,
    "french": french.models,
    "french_bands": functools.partial(french.by_bands, rows_of.FRENCH),
    "french_closed_tuning": french.closed_tuning,
    "french_closed": functools.partial(french.by_bands, rows_of.FRENCH_CLOSED),
    "french_tuning": french.tuning,
    "french_inputs": french.inputs,
    "french_without": functools.partial(of_ways, rows_of.FRENCH_WITHOUT, "knowledge of words"),
    "french_parts": french.parts,
    "french_agreement": french.agreement,
    "rare_words": questions.rare_words,
    "countries": questions.countries,
    "forms": questions.forms,
    "power": power.table,
    "forms_further": power.further,
    "e2e": questions.realisations,
    "adaptation": adaptation,
    "speech": speech,
    "speech_lists": speech_lists,
    "caption_models": functools.partial(of_ways, rows_of.CAPTION_MODELS, "trigrams", "test1"),
    "translation_lists": translation_lists.table,
    "translation_new_words": translation_lists.new_words,
    "translation_sizes": translation_lists.sizes,
    "translation_shares": translation_lists.shares,
    "chinese_lists": chinese_lists.table,
}


def with_tables(pages: list[str]) -> list[str]:
    """Returns the pages with their tables made anew.

    Args:
      pages: the texts of docs/results.md and of the pages below it.

    Raises:
      UserError: a table is missing from the pages or stands there twice.
    """
    names = [match[1] for page in pages for match in _TABLE.findall(page)]
    if sorted(names) != sorted(TABLES):
        raise UserError(f"the pages have the tables {names}, not {[*TABLES]}: put them back.")
    return [
        _TABLE.sub(lambda match: f"{match[1]}{TABLES[match[2]]()} {match[3]}", page)
        for page in pages
    ]


def main():
    """Runs the program."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="writes nothing; fails if they differ")
    arguments = parser.parse_args()
    pages = [path.read_text(encoding="utf-8") for path in PAGES]
    made = with_tables(pages)
    other = [path for path, *of in zip(PAGES, pages, made, strict=True) if of[0] != of[1]]
    if not other:
        print(f"{len(TABLES)} tables of {len(PAGES)} pages agree with the records.")
        return
    if arguments.check:
        raise UserError(f"{other[0].name} has other tables than records make: run make tables.")
    for path, text in zip(PAGES, made, strict=True):
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    program.program(main)
