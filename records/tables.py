"""Makes the tables of docs/results.md whose passports are kept: python -m records.tables [--check]

Such a table stands between two comments, "table NAME" and "end of table". All of it, and the line
below it on seeds, revisions, machine and date, comes from records/*.jsonl; a test makes the tables
again and compares.
"""

import argparse
import functools
import itertools
import json
import math
import pathlib
import re
import statistics
from collections.abc import Callable, Mapping

from records import rows as rows_of
from records.cells import FOLDER, every_run, grid, markdown, mean, passports
from zoo.commands import program
from zoo.errors import UserError
from zoo.evaluation.perplexity import perplexity_of
from zoo.evaluation.reports.micro_report import PAIRS
from zoo.sources.micro.micro import Micro

PAGE = pathlib.Path(__file__).parent.parent / "docs" / "results.md"
_TABLE = re.compile(r"(<!-- table (\w+)[^\n]*-->\n).*?(<!-- end of table -->)", re.DOTALL)


@functools.cache
def language() -> float:
    """Computes the log-perplexity of the micro language's test text by the language itself."""
    micro = Micro()
    corpus = micro.read("test")
    log_prob = sum(map(sum, map(micro.token_log_probs, corpus.sentences)))
    return -log_prob / sum(len(words) + 1 for words in corpus.sentences)  # boundaries are certain


def micro() -> str:
    """Makes the table of the micro language: softmax and log-linear head, three seeds each."""
    loss = language()
    rows = [["the language itself", f"{loss:.4f}", f"{perplexity_of(loss):.2f}", "", ""]]
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


def micro_training() -> str:
    """Makes the table of ways to train the log-linear head on the micro language."""
    return of_ways(rows_of.WAYS, "trained by")


def translations(run: str, split: str, models: int = 1) -> dict[int, dict[str, float]]:
    """Returns {beam: {measure: score}} of a split's translations by a run or its ensemble.

    Args:
      run: its name in the records.
      split: its name.
      models: runs of the ensemble that the run is the first of; 1 for the run alone.
    """
    found = {}
    for name, passport in every_run()[run][1].results.items():
        of_split = name.startswith(f"translation-{split}.")
        if of_split and len(passport["decoding"]["runs"]) == models:
            beam = passport["decoding"]["search"]["beam"]
            found[beam] = {name: of["score"] for name, of in passport["figures"].items()}
    return found


def captions_of(runs: dict[str, str], together: str = "") -> str:
    """Makes a table of encoder-decoders on captions: perplexity beside BLEU by the width of the
    beam.

    Args:
      runs: {the name of the row: run}.
      together: the name of the row for an ensemble of all runs, the first of which keeps its
        passports; no row if empty.
    """
    rows = []
    for how, run in runs.items():
        found = passports(run)
        perplexities = [
            format(perplexity_of(found[split]["figures"]["log_perplexity"]), ".2f")
            for split in ("validation", "test1")
        ]
        parameters = f"{found['test1']['parameters']:,}"
        rows.append([how, *perplexities, *_scores(translations(run, "test1")), parameters])
    if together:
        scores = _scores(translations(next(iter(runs.values())), "test1", len(runs)))
        rows.append([together, "", "", *scores, ""])
    header = ["model", "perplexity, validation", "test 2016", "BLEU (beams)"]
    header += ["chrF2 of the widest beam", "parameters"]
    return markdown(header, rows, [*runs.values()], "test1", spread=False)


def _scores(of_beams):
    """Formats BLEU by the width of the beam, and chrF2 of the widest."""
    bleu = " / ".join(f"{of_beams[beam]['BLEU']:.2f}" for beam in sorted(of_beams))
    beams = ", ".join(map(str, sorted(of_beams)))
    return f"{bleu} ({beams})", f"{of_beams[max(of_beams)]['chrF2']:.1f}"


def ptb_heads() -> str:
    """Makes the table of heads on a quarter of the Penn Treebank.

    Each head is at the rate that was repeated with more seeds, or is best on validation. A column
    shows by how much other rates are worse with the same seed, the first.
    """
    rows, all_runs = [], []
    for head, (name, rates) in rows_of.PTB_HEADS.items():
        runs = {
            rate: [run for run in rows_of.seeds(f"{name}_{rate}") if run in every_run()]
            for rate in rates
        }
        rates = [rate for rate in rates if runs[rate]]
        losses = {
            (rate, split): [_loss(run, split) for run in of_rate]
            for rate, of_rate in runs.items()
            for split in ("validation", "test")
        }
        first = {rate: losses[rate, "validation"][0] for rate in rates}
        best = min(rates, key=lambda rate: (-len(runs[rate]), first[rate]))
        others = (f"{first[rate] - first[best]:.3f} at {rate}" for rate in rates if rate != best)
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


def _loss(run, split):
    return passports(run)[split]["figures"]["log_perplexity"]


def french() -> str:
    """Makes the table of the tuned French models over the words of the training text."""
    rows = []
    for model, runs in rows_of.FRENCH.items():
        found = [passports(run) for run in runs]
        tests = [of_run["test"]["figures"] for of_run in found]
        unknown = [
            next(band["log_perplexity"] for band in figures["bands"] if band["band"] == "unknown")
            for figures in tests
        ]
        losses = (
            [_loss(run, "validation") for run in runs],
            [figures["log_perplexity"] for figures in tests],
            [figures["seen"]["log_perplexity"] for figures in tests],
            unknown,
            [_spread(run) for run in runs],
        )
        low, high = tests[0]["interval"]
        parameters = f"{found[0]['test']['parameters']:,}"
        columns = (mean(loss, ".4f") for loss in losses)
        rows.append([model, *columns, f"{low:.3f}–{high:.3f}", parameters])
    header = ["model", "validation", "test", "words of the lexicon", "`<unk>`"]
    header += ["test, `<unk>` spread over new words", "95 % of seed 0, by sentences"]
    runs = [run for of_model in rows_of.FRENCH.values() for run in of_model]
    return markdown([*header, "parameters"], rows, runs)


def _spread(run):
    """Computes the nats per token of a run's test if <unk> is spread over the test's new words.

    <unk> and the K new words share its probability evenly: each unknown token costs log(K + 1) more
    (see docs/passports.md).
    """
    test = passports(run)["test"]
    new, types = test["out_of_vocabulary"], test["out_of_vocabulary_types"]
    return test["figures"]["log_perplexity"] + new / test["tokens"] * math.log(types + 1)


def by_bands(models: Mapping[str, tuple[str, ...]]) -> str:
    """Makes a table of a test's words by how often training saw them, the seeds of each together.

    Figures with the one weight of `zoo.evaluation.unseen_weight` are shown where runs have them.

    Args:
      models: {the name of the column: runs}.
    """
    found = [[passports(run)["test"]["figures"] for run in runs] for runs in models.values()]
    first = found[0][0]
    parts = {"all words": lambda figures: figures}
    for band in first["bands"]:
        label = f"{band['band']} times in training"
        label = {"unknown": "`<unk>`", "unseen": "never in training"}.get(band["band"], label)
        parts[label] = lambda figures, name=band["band"]: next(
            of for of in figures["bands"] if of["band"] == name
        )
    if "mixture" in first:
        parts["all words, one weight for those never in training"] = lambda figures: figures[
            "mixture"
        ]
    rows = []
    total = sum(band["tokens"] for band in first["bands"])
    for label, part in parts.items():
        losses = [[part(figures)["log_perplexity"] for figures in of] for of in found]
        gap = statistics.fmean(losses[0]) - statistics.fmean(losses[1])
        tokens = part(first).get("tokens", total)
        rows.append([label, f"{tokens:,}", *(mean(of, ".3f") for of in losses), f"{gap:.3f}"])
    header = ["words of the test", "tokens", *models, "difference"]
    return markdown(header, rows, [run for runs in models.values() for run in runs])


def french_tuning() -> str:
    """Makes the table of settings: validation of both models with a quarter of the text and all."""
    rows, runs = [], []
    for setting, of_setting in rows_of.FRENCH_TUNING.items():
        known = [run for run in of_setting if run in every_run()]
        cells = (f"{_loss(run, 'validation'):.4f}" if run in known else "" for run in of_setting)
        rows.append([setting, *cells])
        runs += known
    header = ["setting", "softmax, a quarter", "log-linear, a quarter", "softmax, all"]
    return markdown([*header, "log-linear, all"], rows, runs, "validation")


def french_inputs() -> str:
    """Makes the table of inputs by heads: nats per token of the test, and agreement."""
    rows, runs = [], []
    for text, (sentences, count) in rows_of.FRENCH_TEXTS.items():
        for inputs, head in itertools.product(("words", "features"), ("softmax", "log_linear")):
            found = rows_of.seeds(f"fr{text}_{inputs}_{head}", count)
            cases = [passports(run)["pairs:agreement-test"]["figures"]["cases"] for run in found]
            shares = (
                mean([100 * of_run[case]["accuracy"] for of_run in cases], ".1f") + " %"
                for case in ("number, all", "gender, all")
            )
            loss = mean([_loss(run, "test") for run in found], ".4f")
            rows.append([sentences, inputs, head.replace("_", "-"), loss, *shares])
            runs += found
    header = ["training sentences", "inputs", "head", "test", "number agreement"]
    return markdown([*header, "gender agreement"], rows, runs)


def french_agreement() -> str:
    """Makes the table of agreement pairs of the French test, three seeds of each model."""
    of_models = [
        [passports(run)["pairs:agreement-test"]["figures"]["cases"] for run in runs]
        for runs in rows_of.FRENCH.values()
    ]
    rows = []
    for case, first in of_models[0][0].items():
        row = [case]
        for found in of_models:
            low, high = found[0][case]["interval"]
            shares = [100 * of_run[case]["accuracy"] for of_run in found]
            row += [mean(shares, ".1f") + " %", f"{100 * low:.0f}–{100 * high:.0f} %"]
        rows.append([*row, f"{first['pairs']:,}"])
    header = ["agreement, distance", "softmax", "95 % of seed 0", "log-linear", "95 % of seed 0"]
    runs = [run for of_model in rows_of.FRENCH.values() for run in of_model]
    return markdown([*header, "pairs"], rows, runs)


def precision() -> str:
    """Makes the table of recipes trained with products in float32 and in bfloat16."""
    rows, runs = [], []
    for text, (name, tests) in rows_of.PRECISION.items():
        for split in ("validation", *tests):
            row = [f"{text}, {split}"]
            for compute in ("float32", "bfloat16"):
                found = rows_of.seeds(f"{name}_{compute}")
                row.append(mean([_loss(run, split) for run in found], ".4f"))
                runs += found
            rows.append(row)
    return markdown(["text", "float32", "bfloat16"], rows, [*dict.fromkeys(runs)], "validation")


def domains() -> str:
    """Makes the table of captions in Czech and news, drawn by weights and judged on both tests."""
    rows = []
    for how, run in rows_of.CZECH_DOMAINS.items():
        low, high = passports(run)["captions.test"]["figures"]["interval"]
        losses = [
            f"{_loss(run, split):.4f}" for split in ("validation", "captions.test", "news.test")
        ]
        rows.append([how, *losses, f"{low:.3f}–{high:.3f}"])
    header = ["captions to news", "validation, captions", "test, captions", "test, news"]
    header.append("95 % of captions, by sentences")
    return markdown(header, rows, [*rows_of.CZECH_DOMAINS.values()], "captions.test")


def languages() -> str:
    """Makes the table of French and Czech in one model of letters, and of each alone."""
    rows = []
    for how, run in rows_of.TWO_LANGUAGES.items():
        found = passports(run)
        splits = ("french.validation", "french.test1", "czech.validation", "czech.test")
        losses = (f"{_loss(run, split):.4f}" if split in found else "" for split in splits)
        rows.append([how, *losses])
    header = ["trained on", "French, validation", "test1", "Czech, validation", "test"]
    runs = [*rows_of.TWO_LANGUAGES.values()]
    return markdown(header, rows, runs, "validation")


def rare_words() -> str:
    """Makes the table of rare numbers and names, against a word of the other kind."""
    found = {
        model: [passports(run)["pairs:rare-words-test"]["figures"]["cases"] for run in runs]
        for model, runs in rows_of.RARE_WORDS.items()
    }
    rows = []
    for case, first in next(iter(found.values()))[0].items():
        row = [case, f"{first['words']:,}"]
        for of_runs in found.values():
            losses = [
                statistics.fmean(of_run[case][name] for of_run in of_runs)
                for name in ("log_prob", "log_prob_of_other")
            ]
            shares = [100 * of_run[case]["accuracy"] for of_run in of_runs]
            row += [" and ".join(f"{loss:.2f}" for loss in losses), mean(shares, ".1f") + " %"]
        rows.append(row)
    header = ["the word, its occurrences in training", "words"]
    for model in found:
        header += [f"{model}: log p of it and of the other", "preferred"]
    runs = [run for of_model in rows_of.RARE_WORDS.values() for run in of_model]
    return markdown(header, rows, runs, "pairs:rare-words-test")


def countries() -> str:
    """Makes the table of answers to questions about countries."""
    rows = []
    for model, runs in rows_of.COUNTRIES.items():
        found = [passports(run) for run in runs]
        shares = (
            [100 * of_run[f"answers:{split}"]["figures"]["accuracy"] for of_run in found]
            for split in ("known", "test")
        )
        unseen = [-of_run["test"]["figures"]["unseen"]["log_perplexity"] for of_run in found]
        rows.append([model, *(mean(share, ".1f") + " %" for share in shares), mean(unseen, ".3f")])
    header = ["model", "countries of training", "new countries"]
    header.append("log p of words never seen in training")
    return markdown(header, rows, [run for runs in rows_of.COUNTRIES.values() for run in runs])


def speech() -> str:
    """Makes the table of the language models of the recogniser's lists."""
    rows, runs = [], []
    for model, of_model in rows_of.SPEECH.items():
        losses = [_loss(run, "validation") for run in of_model]
        perplexity = f"{perplexity_of(statistics.fmean(losses)):.1f}"
        parameters = f"{passports(of_model[0])['validation']['parameters']:,}"
        rows.append([model, mean(losses, ".4f"), perplexity, parameters])
        runs += of_model
    header = ["model", "validation", "perplexity", "parameters"]
    return markdown(header, rows, runs, "validation")


def ptb_awd() -> str:
    """Makes the table of the small AWD-LSTM, as it is and learning from the text."""
    rows = []
    for row, learning in rows_of.LEARNING.items():
        found = [passports(run, learning) for run in rows_of.PTB_AWD]
        losses = {
            split: [of_run[split]["figures"]["log_perplexity"] for of_run in found]
            for split in ("validation", "test")
            if all(split in of_run for of_run in found)
        }
        low, high = found[0]["test"]["figures"]["interval"]
        cells = [
            mean(losses[split], ".4f") if split in losses else ""
            for split in ("validation", "test")
        ]
        perplexity = f"{perplexity_of(statistics.fmean(losses['test'])):.1f}"
        rows.append([row, *cells, perplexity, f"{low:.3f}–{high:.3f}"])
    header = ["model", "validation", "test", "perplexity of the test"]
    header += ["95 % of the first seed, by sentences"]
    return markdown(header, rows, list(rows_of.PTB_AWD))


def variants(file: str, seeds: str) -> str:
    """Makes a table of variants that benchmarks.ingredients trained, in the order of validation.

    Args:
      file: its result in this folder.
      seeds: which seeds its rows have, for the line below the table.
    """
    kept = json.loads((FOLDER / file).read_text())
    of_seeds: dict[str, list[dict]] = {}
    for name, row in kept["variants"].items():
        of_seeds.setdefault(name.partition(", seed")[0], []).append(row)
    rows = []
    for name, several in of_seeds.items():
        losses = [[row[split] for row in several] for split in ("validation", "test")]
        perplexities = [f"{perplexity_of(statistics.fmean(of)):.1f}" for of in losses]
        rows.append([name, *(mean(of, ".3f") for of in losses), *perplexities])
    rows.sort(key=lambda row: row[1])
    header = ["variant", "validation", "test", "perplexity, validation", "test"]
    return (
        f"{grid(header, rows)}\nFrom records/{file}: {seeds}; revision {kept['revision'][:7]}; "
        f"{kept['device']}, jax {kept['versions']['jax']}; {kept['date']}."
    )


TABLES: dict[str, Callable[[], str]] = {
    "micro": micro,
    "micro_training": micro_training,
    "captions_five": functools.partial(captions_of, rows_of.FIVE, "the five together"),
    "czech": functools.partial(of_ways, rows_of.CZECH, "trigrams"),
    "lm1b": functools.partial(of_ways, rows_of.LM1B, "model"),
    "czech_domains": domains,
    "two_languages": languages,
    "ptb_heads": ptb_heads,
    "ptb_awd": ptb_awd,
    "ptb_variants": functools.partial(
        variants,
        "ptb_variants.json",
        "seed 0, of rows with brackets also 1, of the first recipe also 2 (in brackets the least "
        "and the greatest)",
    ),
    "ptb_left_out": functools.partial(variants, "ptb_left_out.json", "seed 0"),
    "precision": precision,
    "french": french,
    "french_bands": functools.partial(by_bands, rows_of.FRENCH),
    "french_closed": functools.partial(by_bands, rows_of.FRENCH_CLOSED),
    "french_tuning": french_tuning,
    "french_inputs": french_inputs,
    "french_without": functools.partial(of_ways, rows_of.FRENCH_WITHOUT, "knowledge of words"),
    "french_all_words": functools.partial(of_ways, rows_of.FRENCH_ALL_WORDS, "sentences"),
    "french_agreement": french_agreement,
    "rare_words": rare_words,
    "countries": countries,
    "speech": speech,
}


def with_tables(page: str) -> str:
    """Returns the page with its tables made anew.

    Args:
      page: the text of docs/results.md.

    Raises:
      UserError: a table is missing from the page or stands there twice.
    """
    names = [match[1] for match in _TABLE.findall(page)]
    if sorted(names) != sorted(TABLES):
        raise UserError(f"the page has the tables {names}, not {[*TABLES]}: put the comments back.")
    return _TABLE.sub(lambda match: f"{match[1]}{TABLES[match[2]]()} {match[3]}", page)


def main():
    """Runs the program."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="writes nothing; fails if they differ")
    page = PAGE.read_text(encoding="utf-8")
    made = with_tables(page)
    arguments = parser.parse_args()
    if made == page:
        print(f"{len(TABLES)} tables of {PAGE.name} agree with the records.")
        return
    if arguments.check:
        raise UserError(f"{PAGE.name} has other tables than records make: run make tables.")
    PAGE.write_text(made, encoding="utf-8")


if __name__ == "__main__":
    program.program(main)
