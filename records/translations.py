"""Tables of encoder-decoders on captions, after Sutskever, Vinyals and Le (2014)."""

import functools
import json
from collections.abc import Sequence

import numpy as np

from records import cells, list_scores
from records import rows as rows_of
from records.cells import grid, loss, markdown, mean, origin, p_cell, provenance_line, results
from zoo.lab.comparison.paired import format_p
from zoo.lab.evaluation import item_scores, significance
from zoo.lab.evaluation.figures import TranslationPassport
from zoo.lab.evaluation.perplexity import perplexity_of
from zoo.lab.rescoring import Bleu
from zoo.lab.table import COUNT, SCORE, Column, Table, format_value

TEST, OTHER_TEST = list_scores.TEST, "test2"
BEAMS, WIDEST = (1, 2, 12), 12
BLEU = Bleu().figure
COUNTS = 10  # numbers of a sentence that BLEU is computed from
# BLEU of the paper's table 1, with a beam of 12, of the rows of `rows_of.CAPTIONS`.
PAPER = ("26.17", "30.59", "33.27", "34.81")
# The shortest source of each group of sentences.
LENGTHS = (1, 10, 13, 17)
# Names of systems and of those who score their lists, in the tables.
SYSTEMS = {"attention": "attention", "reversed_0": "one, reversed (seed 0)"}
SCORERS = {
    "itself": "itself",
    "straight": "one, straight (seed 0)",
    "reversed": "one, reversed",
    "five": "five, reversed",
}


@functools.cache
def counts() -> dict[str, np.ndarray]:
    """Reads the counts of each sentence, [sentences, 10], by name; see `list_scores`."""
    with np.load(list_scores.STATISTICS) as archive:
        return {name: archive[name].astype(np.float64) for name in archive}


@functools.cache
def weights() -> dict:
    """Reads the weights of lists, and where they come from."""
    return json.loads(list_scores.WEIGHTS.read_text(encoding="utf-8"))


def translation(runs: Sequence[str], split: str, beam: int) -> tuple[str, TranslationPassport]:
    """Returns (RUN/RESULT, passport) of the translations of a split by runs together.

    Args:
      runs: their names; the first keeps the result.
      split: its name.
      beam: of the search, which normalises by length as the searches of the lists do.
    """
    for passport in results(runs[0]):
        if not isinstance(passport, TranslationPassport) or passport.place is None:
            continue
        search, size = passport.decoding.search, len(passport.decoding.runs)
        settings = size, search.beam, search.length_normalisation
        if passport.split == f"translation-{split}" and settings == (
            *(len(runs), beam),
            weights()["length_normalisation"],
        ):
            return passport.place.prefix.removesuffix("/"), passport
    raise ValueError(f"no translation of {split} by {runs} with a beam of {beam}")


def log_probs(run: str, split: str = TEST) -> tuple[np.ndarray, np.ndarray]:
    """Reads log p of each token of a split by a run, and the tokens of each sentence.

    Args:
      run: its name in the records.
      split: its name.
    """
    (passport,) = (passport for passport in results(run) if passport.split == split)
    arrays = item_scores.read(passport)
    assert arrays is not None
    return arrays["log_prob"].astype(np.float64), arrays["lengths"].astype(np.int64)


def log_perplexity(runs: Sequence[str], split: str) -> float:
    """Computes nats per token of runs together, which average their probabilities.

    Args:
      runs: their names.
      split: the name of the text.
    """
    if len(runs) == 1:
        return loss(runs[0], split)
    tokens = np.logaddexp.reduce([log_probs(run, split)[0] for run in runs]) - np.log(len(runs))
    return -float(tokens.mean())


def gain(sums: np.ndarray) -> np.ndarray:
    """Computes by how much BLEU of the second half of counts is above the first's."""
    return BLEU(sums[..., COUNTS:]) - BLEU(sums[..., :COUNTS])


def bleu_cell(counts_by_seed: Sequence[np.ndarray]) -> str:
    """Formats BLEU: the mean of seeds with least and greatest."""
    return mean([float(BLEU(sentence_counts.sum(0))) for sentence_counts in counts_by_seed], ".2f")


def scores() -> str:
    """Makes the table of single models and ensembles, after the paper's table 1."""
    rows: list[list[str]] = []
    above = None
    for (model, ensembles), paper in zip(rows_of.CAPTIONS.items(), PAPER, strict=True):
        counts_by_beam = {
            beam: [counts()[translation(runs, TEST, beam)[0]] for runs in ensembles]
            for beam in BEAMS
        }
        widest = np.mean(counts_by_beam[WIDEST], axis=0)
        figures = [translation(runs, TEST, WIDEST)[1].figures for runs in ensembles]
        perplexities = (
            [perplexity_of(log_perplexity(runs, split)) for runs in ensembles]
            for split in (TEST, OTHER_TEST)
        )
        rows.append(
            [
                model,
                *(mean(split_perplexities, ".2f") for split_perplexities in perplexities),
                *(bleu_cell(counts_by_beam[beam]) for beam in BEAMS),
                format_value(significance.bootstrap_interval(widest, BLEU), SCORE),
                "" if above is None else _p(above, widest),
                mean([ensemble_figures["chrF2"].score for ensemble_figures in figures], ".1f"),
                paper,
            ]
        )
        above = widest
    header = ["models", "perplexity", "of test 2018", *(f"BLEU, beam {beam}" for beam in BEAMS)]
    header += ["95 %, beam 12", "p against the row above", "chrF2", "BLEU of the paper"]
    by_seeds = [
        [float(BLEU(counts()[translation((run,), TEST, WIDEST)[0]].sum(0))) for run in runs]
        for runs in (rows_of.STRAIGHT, rows_of.REVERSED[:3])
    ]
    between = format_p(significance.seeds_test(*by_seeds))
    return (
        f"{markdown(header, rows, [*rows_of.STRAIGHT, *rows_of.REVERSED], TEST)} By seeds one "
        f"reversed differs from one straight with {between} (beam 12)."
    )


def by_length() -> str:
    """Makes the table of both orders by the length of the source, after the paper's figure 3."""
    words = counts()["source_words"]
    losses, bleu = {}, {}
    for order, runs in {"straight": rows_of.STRAIGHT, "reversed": rows_of.REVERSED[:3]}.items():
        log_probs_by_run = [log_probs(run) for run in runs]
        lengths = log_probs_by_run[0][1]
        sentence = np.repeat(np.arange(len(lengths)), lengths)
        token = -np.mean([log_prob for log_prob, _ in log_probs_by_run], axis=0)
        losses[order] = np.bincount(sentence, token, len(lengths))
        run_counts = [counts()[translation((run,), TEST, WIDEST)[0]] for run in runs]
        bleu[order] = np.mean(run_counts, axis=0)
    gains = np.stack([losses["straight"] - losses["reversed"], lengths], 1)
    pairs = np.hstack([bleu["straight"], bleu["reversed"]])
    groups = np.searchsorted(LENGTHS, words, side="right")
    masks = {}
    for number, shortest in enumerate(LENGTHS, 1):
        range_end = f"-{LENGTHS[number] - 1}" if number < len(LENGTHS) else " and more"
        masks[f"{max(shortest, int(words.min()))}{range_end}"] = groups == number
    rows = []
    for name, mask in {**masks, "all": groups > 0}.items():
        nats = (float(order[mask].sum() / lengths[mask].sum()) for order in losses.values())
        scores = (float(BLEU(ngrams[mask].sum(0))) for ngrams in bleu.values())
        nats_gain = cells.estimate(gains[mask], lambda sums: sums[..., 0] / sums[..., 1])
        rows.append(
            [name, int(mask.sum()), *nats, nats_gain, *scores, cells.estimate(pairs[mask], gain)]
        )
    columns = [Column("source words"), Column("sentences", COUNT)]
    for quantity, form in (("nats a word", ".3f"), ("BLEU", ".2f")):
        headers = f"{quantity}, straight", "reversed", "gain, 95 %"
        columns += [Column(header, form) for header in headers]
    ends = np.hstack([gains * (groups == group)[:, None] for group in (1, len(LENGTHS))])

    def growth(sums):
        return sums[..., 2] / sums[..., 3] - sums[..., 0] / sums[..., 1]

    source = origin([*rows_of.STRAIGHT, *rows_of.REVERSED[:3]], TEST, spread=False)
    return (
        f"{Table(columns, rows).markdown()}\n{source} Means of the seeds, beam 12. In nats the "
        f"gain of the longest sources is {format_value(cells.estimate(ends, growth), '.3f')} above "
        "the shortest sources'."
    )


def lists() -> str:
    """Makes the table of re-ranked lists, after the paper's section 3.6."""
    rows = []
    for system, scorers in rows_of.LISTS.items():
        by_scorer = {
            scorer: {
                way: counts()[f"lists/{system}/{scorer}/{way}"]
                for way in ("untuned", "alone", "even", "tuned", "oracle")
            }
            for scorer in scorers
        }
        first = next(iter(by_scorer.values()))
        title = SYSTEMS[system]
        rows.append(
            [title, "nothing: the first", *[""] * 2, _tuned_cell([first["untuned"]]), "", ""]
        )
        itself = by_scorer["itself"]["tuned"]
        for prefix, name in SCORERS.items():
            seeds = [ways for scorer, ways in by_scorer.items() if scorer.startswith(prefix)]
            if not seeds:
                continue
            tuned = np.mean([seed["tuned"] for seed in seeds], axis=0)
            ways = [bleu_cell([seed[way] for seed in seeds]) for way in ("alone", "even")]
            against = [_p(first["untuned"], tuned), _p(itself, tuned)]
            if prefix == "itself":
                ways, against[1] = ["", ""], ""
            tuned_cell = _tuned_cell([seed["tuned"] for seed in seeds])
            rows.append([title, name, *ways, tuned_cell, *against])
        rows.append([title, "the oracle", *[""] * 2, _tuned_cell([first["oracle"]]), "", ""])
    search = counts()[translation(rows_of.REVERSED, TEST, WIDEST)[0]]
    p = format_p(significance.paired_test(search, counts()["lists/reversed_0/five/tuned"], BLEU))
    count = f"{len(search):,} sentences; "
    origin_line = provenance_line("list_scores", count, "captions_lists.json")
    header = ["lists of", "scored by", "by that alone", "even average"]
    header += ["tuned on validation, 95 %", "p against the first", "p against itself"]
    return (
        f"{grid(header, rows)}\nThe five's own search with beam 12 has {bleu_cell([search])}; "
        f"against their choice from the lists of one, {p}. {origin_line} In round brackets the "
        "least and the greatest of the seeds."
    )


def _p(left_counts, right_counts):
    return p_cell(significance.paired_test(left_counts, right_counts, BLEU))


def _tuned_cell(counts_by_seed):
    """Formats BLEU of seeds with the interval of their mean."""
    together = np.mean(counts_by_seed, axis=0)
    interval = format_value(significance.bootstrap_interval(together, BLEU), SCORE)
    return f"{bleu_cell(counts_by_seed)} {interval}"
