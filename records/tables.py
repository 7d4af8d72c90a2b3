"""Makes the tables of docs/results.md whose passports are kept: python -m records.tables [--check]

Such a table stands between two comments, "table NAME" and "end of table". All of it, and the line
below it on seeds, revisions, machine and date, comes from records/runs; a test makes the tables
again and compares. Of what else stands on the page few passports are left.
"""

import argparse
import functools
import pathlib
import re
import statistics
from collections.abc import Callable, Mapping

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
    """{split: passport} of a record, over the words that it was trained on."""
    found = map(storage.read_object, sorted((FOLDER / run / "results").glob("*.json")))
    return {passport["split"]: passport for passport in found if not passport.get("spread_unknown")}


def mean(values: list[float], form: str) -> str:
    """The mean of the seeds, with the least and the greatest in brackets if there are several."""
    text = format(statistics.fmean(values), form)
    if len(values) > 1:
        text += f" ({min(values):{form}}–{max(values):{form}})"
    return text


def origin(runs: list[str], test: str = "test", spread: bool = True) -> str:
    """Where figures come from, in one line; with `spread`, that brackets are of several seeds."""
    found = [passports(run)[test] for run in runs]
    seeds = sorted({passport["training"]["seed"] for passport in found})
    revisions = sorted({passport["training"]["made_with"]["revision"][:7] for passport in found})
    machines = {
        f"{passport['machine']['processor']}, {passport['machine']['cores']} cores"
        for passport in found
    }
    dates = sorted({passport["date"][:10] for passport in found})
    brackets = " In brackets the least and the greatest of the seeds."
    return (
        f"From the passports in records/runs: seed {', '.join(map(str, seeds))}; revision "
        f"{', '.join(revisions)}; {', '.join(sorted(machines))}; {', '.join(dates)}."
        + brackets
        * (spread and len(seeds) > 1)
    )


def markdown(
    header: list[str],
    rows: list[list[str]],
    runs: list[str],
    test: str = "test",
    spread: bool = True,
) -> str:
    """A table and the line on its origin; see `origin`."""
    lines = [header, ["---"] * len(header), *rows]
    return (
        "".join(f"| {' | '.join(cells)} |\n" for cells in lines)
        + f"\n{origin(runs, test, spread)}\n"
    )


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


def of_ways(ways: Mapping[str, tuple[str, ...]], first: str, test: str = "test") -> str:
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


def translations(run: str, split: str, models: int = 1) -> dict[int, dict[str, float]]:
    """{beam: {measure: score}} of a split that a run alone, or an ensemble of so many runs of which
    it is the first, has translated."""
    found = {}
    for path in sorted((FOLDER / run / "results").glob(f"translation-{split}.*.json")):
        passport = storage.read_object(path)
        if len(passport["decoding"]["runs"]) == models:
            beam = passport["decoding"]["search"]["beam"]
            found[beam] = {name: of["score"] for name, of in passport["figures"].items()}
    return found


def captions_of(runs: dict[str, str], together: str = "") -> str:
    """Encoder-decoders on captions: perplexity beside BLEU by the width of the beam.

    Args:
      runs: {what it is: run}.
      together: what an ensemble of all of them is called, the first of which keeps its passports;
        none if empty.
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
    """BLEU by the width of the beam, and chrF2 of the widest, as text."""
    bleu = " / ".join(f"{of_beams[beam]['BLEU']:.2f}" for beam in sorted(of_beams))
    beams = ", ".join(map(str, sorted(of_beams)))
    return f"{bleu} ({beams})", f"{of_beams[max(of_beams)]['chrF2']:.1f}"


def seeds(name: str, count: int = 3) -> tuple[str, ...]:
    """The records of a run's seeds."""
    return tuple(f"{name}_{seed}" for seed in range(count))


def ptb_heads() -> str:
    """Heads on a quarter of the Penn Treebank, each at the rate that is best on validation, with up
    to three seeds, and by how much the others are worse."""
    rows, all_runs = [], []
    for head, (name, rates) in PTB_HEADS.items():
        runs = {
            rate: [run for run in seeds(f"{name}_{rate}") if (FOLDER / run).exists()]
            for rate in rates
        }
        losses = {
            (rate, split): [_loss(run, split) for run in of_rate]
            for rate, of_rate in runs.items()
            for split in ("validation", "test")
        }
        means = {rate: statistics.fmean(losses[rate, "validation"]) for rate in rates}
        best = min(rates, key=lambda rate: means[rate])
        others = (f"{means[rate] - means[best]:.3f} at {rate}" for rate in rates if rate != best)
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
    header = ["head", "validation", "test", "perplexity of the test", "worse on validation"]
    return markdown([*header, "parameters"], rows, all_runs)


def _loss(run, split):
    return passports(run)[split]["figures"]["log_perplexity"]


def french_agreement() -> str:
    """Agreement pairs of the French test by what agrees and at which distance, three seeds of each
    model."""
    of_models = [
        [
            passports(run)["pairs:agreement-test"]["figures"]["cases"]
            for run in FRENCH_ALL_WORDS[way]
        ]
        for way in FRENCH_BEST
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
    runs = [run for way in FRENCH_BEST for run in FRENCH_ALL_WORDS[way]]
    return markdown([*header, "pairs"], rows, runs)


def domains() -> str:
    """Captions in Czech and news drawn by weights, judged on the tests of both."""
    rows = []
    for how, run in CZECH_DOMAINS.items():
        low, high = passports(run)["captions.test"]["figures"]["interval"]
        losses = [
            f"{_loss(run, split):.4f}" for split in ("validation", "captions.test", "news.test")
        ]
        rows.append([how, *losses, f"{low:.3f}–{high:.3f}"])
    header = ["captions to news", "validation, captions", "test, captions", "test, news"]
    header.append("95 % of captions, by sentences")
    return markdown(header, rows, [*CZECH_DOMAINS.values()], "captions.test")


def languages() -> str:
    """French and Czech in one model of letters, and each alone."""
    rows = []
    for how, run in TWO_LANGUAGES.items():
        found = passports(run)
        splits = ("french.validation", "french.test1", "czech.validation", "czech.test")
        losses = (f"{_loss(run, split):.4f}" if split in found else "" for split in splits)
        rows.append([how, *losses])
    header = ["trained on", "French, validation", "test1", "Czech, validation", "test"]
    runs = [*TWO_LANGUAGES.values()]
    return markdown(header, rows, runs, "validation")


CZECH_DOMAINS = {
    "2,900 captions alone": "domains_captions",
    "2,900 captions, 3 to 1": "domains_3_to_1",
    "2,900 captions, 1 to 1": "domains_1_to_1",
    "2,900 captions, as many as there are of both": "domains_as_they_are",
    "290 captions alone": "domains_290_captions",
    "290 captions, 3 to 1": "domains_290_3_to_1",
}
TWO_LANGUAGES = {
    "both": "two_languages_char",
    "French alone": "french_char",
    "Czech alone": "czech_char",
}
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
    "log-linear, dropout 0.5": ("ll16_d05", "ll16_d05_1", "ll16_d05_2"),
    "softmax, background as a fixed bias, dropout 0.5, 8 epochs": (
        "sm16_bg_d05",
        "sm16_bg_d05_1",
        "sm16_bg_d05_2",
    ),
    "the same, dropout 0.3": ("sm16_bg_d03",),
    "the same, of inputs 0.5, too": ("sm16_bg_d05_i05",),
    "the same, weight decay 0.01": ("sm16_bg_d05_wd",),
    "the same, weight decay 0.3": ("sm16_bg_d05_wd03",),
    "the same, windows of 35": ("sm16_bg_d05_w35",),
    "the same, two layers": ("sm16_bg_d05_l2",),
    "the same, rate 0.001": ("sm16_bg_d05_r001",),
    "the same, 4 epochs": ("sm16_bg_d05_e4",),
    "4 epochs, dropout 0.65, of inputs 0.5": ("sm16_bg_d065_i05_e4",),
    "that, tied": ("sm16_bg_tied_d065_i05_e4",),
    "softmax without the background, dropout 0.5, 4 epochs": ("sm16_d05_e4",),
}
# What the log-linear model is without a part of what it knows.
FRENCH_WITHOUT = {
    "all: background, words, tags": ("ll16_d05", "ll16_d05_1", "ll16_d05_2"),
    "a uniform background": ("ll16_d05_no_background",),
    "no words of their own": ("ll16_d05_no_words",),
    "no tags": ("ll16_d05_no_tags",),
}
# By how many sentences there are.
FRENCH_CURVE = {
    "432, log-linear": ("ll32_d05",),
    "864, log-linear": ("ll16_d05", "ll16_d05_1", "ll16_d05_2"),
    "1,728, log-linear": ("ll8_d05",),
    "432, softmax with the background, 4 epochs": ("sm32_bg",),
    "864, softmax with the background, 4 epochs": ("sm16_bg_d05_e4",),
    "1,728, softmax with the background, 4 epochs": ("sm8_bg",),
}
# Of a quarter, a half and all, each over its own words.
FRENCH_LARGER = {
    "3,456, log-linear": ("ll4_d05", "ll4_d05_1"),
    "6,912, log-linear": ("ll2_d05",),
    "13,826, log-linear": ("ll1_d05",),
    "3,456, softmax with the background, 8 epochs": ("sm4_bg_d05", "sm4_bg_d05_1"),
    "3,456, softmax with the background, 4 epochs": ("sm4_bg_d05_e4",),
    "6,912, softmax with the background, 4 epochs": ("sm2_bg_d05_e4",),
    "13,826, softmax with the background, 4 epochs": ("sm1_bg_d05_e4",),
}
# Over the words of all of the text, however much of it is trained on.
FRENCH_ALL_WORDS = {
    f"{sentences}, {name}": tuple(f"{short}{part}_all_words_{seed}" for seed in seeds)
    for short, name in (("ll", "log-linear"), ("sm", "softmax with the background, 4 epochs"))
    for part, sentences, seeds in (
        (16, "864", (0, 1)),
        (8, "1,728", (0, 1)),
        (4, "3,456", (0, 1)),
        (2, "6,912", (0, 1) if short == "ll" else (0,)),
    )
}
FRENCH_ALL_WORDS |= {
    "13,826, log-linear": seeds("ll1_all_words"),
    "13,826, softmax with the background, 4 epochs": seeds("sm1_all_words"),
}
FRENCH_BEST = ("13,826, softmax with the background, 4 epochs", "13,826, log-linear")
# Of a quarter, with the state of all words before and of the last eight.
FRENCH_WINDOW = {
    "log-linear, all words before": ("ll4_d05", "ll4_d05_1"),
    "log-linear, the last 8 words": ("ll4_window",),
    "softmax with the background, 4 epochs, all words before": ("sm4_bg_d05_e4",),
    "softmax with the background, 4 epochs, the last 8 words": ("sm4_window_e4",),
}
# On a quarter of the Penn Treebank: the same noise, words a lane and rates.
PTB_SAMPLED = {
    f"{name}, {samples:,} noise words, rate {rate}": tuple(
        f"ptb_{short}_{samples}_{rate}_{seed}" for seed in range(2 if rate == 40 else 1)
    )
    for samples in (100, 1000)
    for name, short in (("NCE", "nce"), ("importance sampling", "is"))
    for rate in (20, 40, 80)
}
PTB_SAMPLED |= {
    "the exact softmax, rate 20": ("ptb_exact_20_0",),
    "the exact softmax, rate 40": ("ptb_exact_40_0", "ptb_exact_40_1"),
}
_SGD = ("20", "40", "80")
# {head: (its records but for rate and seed, rates)}, on a quarter of the Penn Treebank.
PTB_HEADS = {
    "softmax": ("ptb_exact", _SGD),
    "importance sampling, 1,024 words a batch": ("ptb_is_batch", _SGD),
    "NCE, 100 words a lane": ("ptb_nce_100", _SGD),
    "adaptive softmax": ("ptb_adaptive", _SGD),
    "hierarchical softmax": ("ptb_hierarchical", ("20", "40")),
    "mixture of 3 softmaxes": ("ptb_mixture", ("20", "40")),
    "importance sampling by Adam": ("ptb_is_adam", ("0.002", "0.004", "0.008", "0.016")),
    "CNN softmax, sampled in the same way, by Adam": (
        "ptb_cnn",
        ("0.001", "0.002", "0.004", "0.008"),
    ),
}
# English to French without attention, log-linear decoders.
CAPTIONS = {
    "`multi30k_en_fr_skip`, seed 0": "en_fr_skip",
    "small, sources reversed, seed 1": "en_fr_small_1",
    "forward, seed 1": "en_fr_small_forward_1",
    "target reversed, seed 1": "en_fr_small_target_reversed_1",
    "sources reversed, 254 cells for 192, seed 0": "en_fr_small_wide",
    "four layers, seed 0": "en_fr_small_four_layers",
    "the first half of each source, seed 0": "en_fr_small_half",
}
# Five seeds of one recipe.
FIVE = {f"skip connections, seed {seed}": f"en_fr_small_skip_{seed}" for seed in range(5)}
CZECH_CAPTIONS = {
    "sources reversed": "en_cs_small",
    "forward": "en_cs_small_forward",
    "target reversed": "en_cs_small_target_reversed",
}
# Words and letters in, each trained as suits it best; letters are characters.
CZECH = {
    "WE, constant rate, no dropout": seeds("czech_we_own"),
    "CWE, half a cosine, dropout": seeds("czech_cwe_characters"),
}
# The rows of table 1 of Jozefowicz et al. (2016), small.
LM1B = {
    "a softmax": ("lm1b_softmax",),
    "importance sampling": ("lm1b_is",),
    "NCE": ("lm1b_nce",),
    "importance sampling, CNN inputs": ("lm1b_cnn_inputs",),
    "CNN inputs and CNN softmax": ("lm1b_cnn_softmax",),
    "that, corrected by 32 numbers a word": ("lm1b_corrected",),
}
CONFIGS = ("micro_log_linear", "micro_softmax")
TABLES: dict[str, Callable[[], str]] = {
    "micro": micro,
    "micro_training": micro_training,
    "captions": functools.partial(captions_of, CAPTIONS),
    "captions_five": functools.partial(captions_of, FIVE, "the five together"),
    "captions_czech": functools.partial(captions_of, CZECH_CAPTIONS),
    "czech": functools.partial(of_ways, CZECH, "trigrams"),
    "lm1b": functools.partial(of_ways, LM1B, "model"),
    "czech_domains": domains,
    "two_languages": languages,
    "ptb_heads": ptb_heads,
    "ptb_sampled": functools.partial(of_ways, PTB_SAMPLED, "loss"),
    "french_16": functools.partial(of_ways, FRENCH_16, "of 864 sentences"),
    "french_without": functools.partial(of_ways, FRENCH_WITHOUT, "what it knows of words"),
    "french_curve": functools.partial(of_ways, FRENCH_CURVE, "sentences"),
    "french_larger": functools.partial(of_ways, FRENCH_LARGER, "sentences"),
    "french_all_words": functools.partial(of_ways, FRENCH_ALL_WORDS, "sentences"),
    "french_agreement": french_agreement,
    "french_window": functools.partial(of_ways, FRENCH_WINDOW, "of 3,456 sentences"),
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
