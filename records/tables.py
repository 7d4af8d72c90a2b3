"""Makes the tables of README, docs/results.md and docs/results/: python -m records.tables [--check]

Such a table stands between two comments, "table NAME" and "end of table". All of it, and the line
below it on seeds, revisions, machine and date, comes from records/*.jsonl; a test makes the tables
again and compares. A figure in running text is a cell of a table, between two comments, of which
the first names it: "= TABLE; FIRST CELLS OF THE ROW; COLUMN".
"""

import argparse
import functools
import pathlib
import re
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from records import (
    claims,
    french,
    further_seeds,
    list_tables,
    penn_treebank,
    questions,
    sasrec,
    translations,
    treebank_tables,
)
from records import rows as rows_of
from records.cells import (
    by_model,
    estimate,
    grid,
    interval,
    join_runs,
    loss,
    markdown,
    nats,
    parameters,
    perplexity,
    provenance_line,
    read_json,
    read_records,
    share,
)
from zoo.errors import UserError
from zoo.lab.commands import program
from zoo.lab.comparison import paired
from zoo.lab.evaluation import significance
from zoo.lab.evaluation.bleu_chrf_wer import WordErrorRate
from zoo.lab.evaluation.perplexity import perplexity_of
from zoo.lab.micro_report import PAIRS
from zoo.lab.table import SCORE, format_value
from zoo.sources.micro import Micro

DOCS = pathlib.Path(__file__).parent.parent / "docs"
PAGES = [DOCS.parent / "README.md", DOCS / "results.md", *sorted((DOCS / "results").glob("*.md"))]
DIVERGED = 10.0  # nats a token above the best rate, more than a uniform guess loses
_TABLE = re.compile(r"(<!-- table (\w+)[^\n]*-->\n).*?(<!-- end of table -->)", re.DOTALL)
_FIGURE = re.compile(r"(<!-- = ([^>]*) -->).*?(<!-- -->)", re.DOTALL)


@functools.cache
def language() -> float:
    """Computes the log-perplexity of the micro language's test text by the language itself."""
    micro = Micro()
    corpus = micro.read("test")
    log_prob = sum(map(sum, map(micro.grammar.token_log_probs, corpus.sentences)))
    return -log_prob / sum(len(words) + 1 for words in corpus.sentences)  # boundaries are certain


def micro() -> str:
    """Makes the table of the micro language: softmax and log-linear head, three seeds each."""
    entropy = language()
    above = [["the language itself", f"{entropy:.4f}", f"{perplexity_of(entropy):.2f}", "", ""]]
    columns = [
        ("nats per token", nats("test")),
        ("perplexity", perplexity("test", ".2f")),
        ("95 % of seed 0, by sentences", interval("test")),
        (f"agreement, {PAIRS:,} pairs", share("pairs:micro-agreement")),
    ]
    return by_model("model", rows_of.models("micro"), columns, above=above)


def by_split(
    table: str,
    first: str,
    splits: Sequence[str] = ("validation", "test"),
    judged: str = "test",
) -> str:
    """Makes a table of runs by their difference: nats per token, the seeds of each together.

    Args:
      table: its name in rows.tsv.
      first: the header of the differences.
      splits: a column each.
      judged: the split of the intervals; "" for none.
    """
    columns = [(split, nats(split)) for split in splits]
    if judged:
        columns.append((f"{judged}, 95 % of the first seed by sentences", interval(judged)))
    return by_model(first, rows_of.models(table), columns, "validation")


def at_rates(table: str) -> str:
    """Makes a table of heads, each at its best learning rate.

    That is the rate that was repeated with more seeds, or else is best on validation. A column
    shows by how much other rates are worse with the same seed, the first.

    Args:
      table: its name in rows.tsv, which has the names of runs but for rate and seed.
    """
    rows, all_runs = [], []
    for head, (name,) in rows_of.models(table).items():
        runs: dict[str, list[str]] = {}
        for run in sorted(read_records()):
            if match := re.fullmatch(rf"{name}_([\d.]+)_\d", run):
                runs.setdefault(match[1], []).append(run)
        rates = sorted(runs, key=float)
        first = {rate: loss(runs[rate][0], "validation") for rate in rates}
        best = min(rates, key=lambda rate: (-len(runs[rate]), first[rate]))
        worse = {rate: first[rate] - first[best] for rate in rates if rate != best}
        rate_notes = (
            f"{nats:.3f} at {rate}" if nats < DIVERGED else f"diverged at {rate}"
            for rate, nats in worse.items()
        )
        rows.append(
            [
                f"{head}, rate {best}",
                *(cell(runs[best]) for cell in (nats("validation"), nats("test"))),
                perplexity("test")(runs[best]),
                ", ".join(rate_notes),
                parameters("test")(runs[best]),
            ]
        )
        all_runs += join_runs(runs)
    header = ["head", "validation", "test", "perplexity of the test", "worse on validation, seed 0"]
    return markdown([*header, "parameters"], rows, all_runs)


def adaptation() -> str:
    """Makes the table of captions by a model over a background of news, and from scratch."""
    figures = nats("test", ".3f"), perplexity("test")
    rows = [
        [captions, *(figure(runs) for runs in models for figure in figures)]
        for captions, models in rows_of.ADAPTATION.items()
    ]
    runs = [run for models in rows_of.ADAPTATION.values() for runs in models for run in runs]
    header = ["captions", "over the background", "perplexity", "from scratch", "perplexity"]
    return markdown(header, rows, runs)


def speech() -> str:
    """Makes the table of the language models of the recogniser's lists."""
    columns = [
        ("validation", nats("validation")),
        ("perplexity", perplexity("validation")),
        ("parameters", parameters("validation")),
    ]
    return by_model("model", rows_of.models("speech"), columns, "validation")


def speech_lists() -> str:
    """Makes the table of word error rates of the recogniser's lists, re-ranked by each run."""
    contents = read_json("speech_lists.json")
    metric = WordErrorRate()
    words = contents["words"]
    errors = {**contents["chosen"], "untuned": contents["untuned"]}
    counts = {
        name: np.array([[count, 0, 0, size] for count, size in zip(run_errors, words, strict=True)])
        for name, run_errors in errors.items()
    }

    def rate(name):
        return format_value(estimate(counts[name], metric.figure), SCORE)

    def cell(run):
        p = significance.paired_test(counts["untuned"], counts[run], metric.figure)
        return f"{rate(run)}, {paired.format_p(p)}"

    models = {"none": ("none",), **rows_of.models("speech")}
    rows = [[model, *map(cell, runs)] for model, runs in models.items()]
    oracle = 100 * sum(contents["oracle"]) / sum(words)
    origin = provenance_line("word_errors", f"{len(words)} utterances; ", "speech_lists.json")
    return (
        f"{grid(['model', 'seed 0', 'seed 1', 'seed 2'], rows)}\nUntuned {rate('untuned')}; the "
        f"oracle has {oracle:.2f}. {origin}"
    )


TABLES: dict[str, Callable[[], str]] = {
    **{table: functools.partial(claims.losses, table) for table in claims.tables()},
    "accuracies": claims.accuracies,
    "micro": micro,
    "micro_training": functools.partial(by_split, "micro_training", "trained by"),
    "captions": translations.scores,
    "captions_lengths": translations.by_length,
    "captions_lists": translations.lists,
    "czech": functools.partial(by_split, "czech", "trigrams"),
    "lm1b": functools.partial(at_rates, "lm1b"),
    "lm1b_full": penn_treebank.full_vocabulary,
    "czech_domains": functools.partial(
        by_split,
        "czech_domains",
        "captions to news",
        ("validation", "captions.test", "news.test"),
        "captions.test",
    ),
    "two_languages": functools.partial(
        by_split,
        "two_languages",
        "trained on",
        ("french.validation", "french.test1", "czech.validation", "czech.test"),
        "",
    ),
    "ptb_heads": functools.partial(at_rates, "ptb_heads"),
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
    "precision": functools.partial(
        by_split, "precision", "recipe", ("validation", "test", "test1", "test2"), ""
    ),
    "french": french.models,
    "french_bands": functools.partial(french.by_bands, rows_of.models("french")),
    "french_closed_tuning": functools.partial(
        french.tuning, "french_closed_tuning", ["model", "setting", "a quarter", "all"]
    ),
    "french_closed": functools.partial(french.by_bands, rows_of.models("french_closed")),
    "french_tuning": functools.partial(
        french.tuning,
        "french_tuning",
        [
            "setting",
            "softmax, a quarter",
            "log-linear, a quarter",
            "softmax, all",
            "log-linear, all",
        ],
    ),
    "french_inputs": french.inputs,
    "french_by_heart": functools.partial(
        by_split, "french_by_heart", "model", ("validation", "test1", "test2"), "test1"
    ),
    "french_without": functools.partial(by_split, "french_without", "knowledge of words"),
    "french_parts": french.parts,
    "french_agreement": french.agreement,
    "rare_words_bands": functools.partial(french.by_bands, rows_of.models("rare_words_tuned")),
    "rare_words": questions.rare_words,
    "rare_words_tuning": functools.partial(
        french.tuning,
        "rare_words_tuning",
        ["setting", "softmax", "rare words as a class", "log-linear"],
    ),
    "countries": questions.countries,
    "forms": questions.forms,
    "forms_further": further_seeds.table,
    "e2e": questions.realisations,
    "adaptation": adaptation,
    "speech": speech,
    "speech_lists": speech_lists,
    "caption_models": functools.partial(
        by_split, "caption_models", "trigrams", ("validation", "test1"), "test1"
    ),
    "translation_searches": list_tables.searches,
    "translation_lists": list_tables.czech,
    "translation_new_words": functools.partial(list_tables.czech, has_new_words=True),
    "chinese_lists": list_tables.chinese,
    "sasrec": sasrec.table,
    **treebank_tables.TABLES,
}


def with_tables(pages: list[str]) -> list[str]:
    """Returns the pages with their tables made anew.

    Args:
      pages: the texts of docs/results.md and of the pages below it.

    Raises:
      UserError: a table is missing from the pages or stands there twice, or a figure in running
        text is of no table.
    """
    names = [match[1] for page in pages for match in _TABLE.findall(page)]
    if sorted(names) != sorted(TABLES):
        raise UserError(f"the pages have the tables {names}, not {[*TABLES]}: put them back.")
    pages = [
        _TABLE.sub(lambda match: f"{match[1]}{TABLES[match[2]]()} {match[3]}", page)
        for page in pages
    ]
    text_by_table = {match[2]: match[0] for page in pages for match in _TABLE.finditer(page)}
    return [
        _FIGURE.sub(lambda match: match[1] + cell(text_by_table, match[2]) + match[3], page)
        for page in pages
    ]


def cell(text_by_table: Mapping[str, str], reference: str) -> str:
    """Returns the cell of a table that a comment before a figure refers to.

    Args:
      text_by_table: {name: lines of the table}.
      reference: TABLE; FIRST CELLS OF THE ROW; COLUMN.

    Raises:
      UserError: no cell or several fit.
    """
    table, first_cells, column = (" ".join(part.split()) for part in reference.split(";"))
    lines = text_by_table.get(table, "").splitlines()
    rows = [line[2:-2].split(" | ") for line in lines if line.startswith("| ")]
    fitting_rows = [row for row in rows if " | ".join(row).startswith(f"{first_cells} | ")]
    if len(fitting_rows) != 1 or column not in rows[0]:
        raise UserError(f"no cell, or several, of the tables fit {reference!r}: name a single one.")
    return fitting_rows[0][rows[0].index(column)]


def main():
    """Runs the program."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="writes nothing; fails if they differ")
    arguments = program.parse(parser)
    pages = [path.read_text(encoding="utf-8") for path in PAGES]
    texts = with_tables(pages)
    stale = [path for path, *pair in zip(PAGES, pages, texts, strict=True) if pair[0] != pair[1]]
    if not stale:
        print(f"{len(TABLES)} tables of {len(PAGES)} pages agree with the records.")
        return
    if arguments.check:
        raise UserError(f"{stale[0].name} has other figures than records make: run make tables.")
    for path, text in zip(PAGES, texts, strict=True):
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    program.program(main)
