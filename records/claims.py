"""The claims of docs/results.md: a row each, computed from records."""

from typing import NamedTuple

from records import list_scores
from records import rows as rows_of
from records.cells import every_run, grid, mean, passports
from records.rows import seeds
from zoo.comparison import paired
from zoo.comparison.comparison import Group, figures_of
from zoo.comparison.paired import Runs, p_text
from zoo.evaluation import results, significance
from zoo.evaluation.results import learns
from zoo.evaluation.significance import LEVEL


class Claim(NamedTuple):
    """A model that is put beside another, each of several seeds."""

    model: str
    runs: tuple[str, ...]
    opponent: str
    others: tuple[str, ...]
    text: str  # in words
    split: str
    where: str  # the page and section of its table
    advice: str


LOSSES = (
    Claim(
        "log-linear, features of a generated language",
        seeds("micro_log_linear"),
        "softmax",
        seeds("micro_softmax"),
        "the micro language",
        "test",
        "micro.md#the-micro-language",
        "take features where the parts of words tell what may follow",
    ),
    Claim(
        "log-linear, morphology",
        seeds("a_ll_w256"),
        "tied softmax, as many trials",
        seeds("a_bg_tiedw256"),
        "French, words of training",
        "test",
        "french.md#over-the-words-of-the-training-text",
        "take it for a language of many forms, also if training has every word of the text",
    ),
    Claim(
        "log-linear, morphology",
        seeds("closed_ll"),
        "softmax with rare words as a class",
        seeds("closed_class"),
        "French, words of the test too",
        "test",
        "french.md#with-the-words-of-the-test-as-in-the-paper",
        "take it all the more if the text has words that training never saw",
    ),
    Claim(
        "log-linear, morphology",
        seeds("closed16_ll"),
        "softmax with rare words as a class",
        seeds("closed16_class"),
        "the same, 864 sentences of training",
        "test",
        "french.md#with-the-words-of-the-test-as-in-the-paper",
        "take it above all with little text",
    ),
    Claim(
        "inputs and head of features",
        seeds("fr16_features_log_linear"),
        "words and softmax",
        seeds("fr16_words_softmax"),
        "French, 864 sentences of training",
        "test",
        "french.md#inputs-or-head",
        "with little text, take features for the inputs, too",
    ),
    Claim(
        "log-linear, spelling of numbers and names",
        seeds("rare_words_log_linear"),
        "softmax",
        seeds("rare_words_softmax"),
        "news",
        "test",
        "questions.md#rare-words",
        "take it for texts with many numbers and names",
    ),
    Claim(
        "words and letters in (CWE)",
        seeds("czech_cwe_characters"),
        "words in (WE)",
        seeds("czech_we_own"),
        "Czech news",
        "test",
        "czech.md#czech-words-from-their-letters-labeau-and-allauzen-2017",
        "take letters as inputs in a language of many forms",
    ),
    Claim(
        "words and letters in (CWE)",
        seeds("czech_cwe_3_captions"),
        "words in (WE)",
        seeds("czech_we_3_captions"),
        "Czech captions",
        "test1",
        "translations.md#translations-re-ranked-with-an-open-vocabulary-labeau-and-allauzen-2017",
        "take letters as inputs, but not to re-rank translations: BLEU is the same",
    ),
    Claim(
        "news beside 290 captions, 1 to 3",
        seeds("domains_290_3_to_1"),
        "290 captions alone",
        seeds("domains_290_captions"),
        "Czech captions",
        "captions.test",
        "czech.md#few-captions-and-much-news-by-weights",
        "add other text by weights if there are a few hundred sentences of your own",
    ),
    Claim(
        "log-linear over a background of news",
        seeds("adapt_50"),
        "the same from scratch",
        seeds("scratch_50"),
        "50 English captions",
        "test",
        "questions.md#captions-over-a-background-of-news",
        "take a background for some tens of sentences",
    ),
    Claim(
        "log-linear over a background of news",
        seeds("adapt_5000"),
        "the same from scratch",
        seeds("scratch_5000"),
        "5,000 English captions",
        "test",
        "questions.md#captions-over-a-background-of-news",
        "train from scratch on some thousands of sentences",
    ),
    Claim(
        "softmax",
        seeds("ptb_exact_40"),
        "importance sampling, 1,024 words a batch",
        seeds("ptb_is_batch_40"),
        "a quarter of the Penn Treebank, 8,820 words",
        "test",
        "penn_treebank.md#heads-on-one-core-and-one-budget",
        "take importance sampling if the softmax is slow: no difference found with three seeds",
    ),
    Claim(
        "softmax",
        seeds("ptb_exact_40"),
        "NCE, 100 words a batch row",
        seeds("ptb_nce_100_40"),
        "a quarter of the Penn Treebank, 8,820 words",
        "test",
        "penn_treebank.md#heads-on-one-core-and-one-budget",
        "take importance sampling before NCE",
    ),
    Claim(
        "softmax",
        seeds("ptb_exact_40"),
        "adaptive softmax",
        seeds("ptb_adaptive_40"),
        "a quarter of the Penn Treebank, 8,820 words",
        "test",
        "penn_treebank.md#heads-on-one-core-and-one-budget",
        "take the adaptive softmax if the softmax is slow and its words cannot be sampled",
    ),
    Claim(
        "softmax",
        seeds("ptb_exact_40"),
        "hierarchical softmax",
        seeds("ptb_hierarchical_40"),
        "a quarter of the Penn Treebank, 8,820 words",
        "test",
        "penn_treebank.md#heads-on-one-core-and-one-budget",
        "do not take the hierarchical softmax for its perplexity",
    ),
    Claim(
        "importance sampling",
        seeds("lm1b_is_4"),
        "NCE",
        seeds("lm1b_nce_4"),
        "One billion words, small",
        "test",
        "penn_treebank.md#one-billion-words-small",
        "take importance sampling before NCE",
    ),
    Claim(
        "CNN softmax with its correction",
        seeds("lm1b_corrected_4"),
        "without the correction",
        seeds("lm1b_cnn_softmax_4"),
        "One billion words, small",
        "test",
        "penn_treebank.md#one-billion-words-small",
        "keep the correction",
    ),
    Claim(
        "corrected CNN softmax and inputs",
        seeds("lm1b_full_corrected"),
        "tables of words, 8 times the parameters",
        seeds("lm1b_full_tables"),
        "One billion words, 793,471 of them",
        "test",
        "penn_treebank.md#one-billion-words-all-793471-of-the-vocabulary",
        "take it where the vocabulary is large and the text small",
    ),
    Claim(
        "products in bfloat16",
        seeds("bf_ptb_bfloat16"),
        "products in float32",
        seeds("bf_ptb_float32"),
        "a quarter of the Penn Treebank, 8,820 words",
        "test",
        "penn_treebank.md#products-in-bfloat16",
        "take bfloat16 where it is faster",
    ),
    Claim(
        "a background of names",
        seeds("e2e_priming"),
        "no background",
        seeds("e2e_plain"),
        "restaurants, characters",
        "test",
        "questions.md#names-with-evidence",
        "take a background if names of the text are known beforehand",
    ),
    Claim(
        "a source read from its last word",
        rows_of.REVERSED[:3],
        "from its first word",
        rows_of.STRAIGHT,
        "captions into French, without attention",
        list_scores.TEST,
        "texts.md#captions-from-english-to-french",
        "reverse the sources of an encoder-decoder without attention if they are long",
    ),
)

ACCURACIES = (
    Claim(
        "log-linear, morphology",
        rows_of.FRENCH["log-linear"],
        "tied softmax, as many trials",
        rows_of.FRENCH["softmax"],
        "agreement in French",
        "pairs:agreement-test",
        "french.md#agreement",
        "take it where agreement counts",
    ),
    Claim(
        "log-linear, spelling of numbers and names",
        rows_of.RARE_WORDS["log-linear"],
        "softmax",
        rows_of.RARE_WORDS["softmax"],
        "a rare word before one of the other kind",
        "pairs:rare-words-test",
        "questions.md#rare-words",
        "take it if the rare words are the ones that matter",
    ),
    Claim(
        "log-linear with an expert of facts",
        rows_of.COUNTRIES["log-linear with the expert"],
        "log-linear",
        rows_of.COUNTRIES["log-linear"],
        "questions about countries not in training",
        "answers:test",
        "questions.md#questions-about-countries",
        "take an expert if a table has the facts",
    ),
    Claim(
        "training under a grammar",
        rows_of.FORMS_FURTHER["geoquery_attention_constrained"],
        "decoding under it alone",
        rows_of.FORMS_FURTHER["geoquery_attention"],
        "GeoQuery, with attention",
        "answers:test",
        "questions.md#how-many-runs-would-decide",
        "train under the grammar, and do not only decode under it",
    ),
    Claim(
        "training under a grammar",
        rows_of.FORMS_FURTHER["overnight_constrained"],
        "decoding under it alone",
        rows_of.FORMS_FURTHER["overnight"],
        "Overnight, without attention",
        "answers:test",
        "questions.md#how-many-runs-would-decide",
        "do so without attention, too, though attention is worth more than the grammar",
    ),
    Claim(
        "log-linear, features of a generated language",
        seeds("micro_log_linear"),
        "softmax",
        seeds("micro_softmax"),
        "agreement in the micro language",
        "pairs:micro-agreement",
        "micro.md#the-micro-language",
        "take features where the parts of words tell what may follow",
    ),
)


def accuracies() -> str:
    """Makes the table of shares of right answers, percent."""
    rows = []
    for claim in ACCURACIES:
        one, other = (
            [100 * passports(run)[claim.split]["figures"]["accuracy"] for run in runs]
            for runs in (claim.runs, claim.others)
        )
        row = [claim.model, claim.opponent, claim.text, mean(one, ".1f"), mean(other, ".1f")]
        by_seeds = _p(significance.seeds_test(one, other))
        several = f"{len(one)} and {len(other)}"
        rows.append([*row, by_seeds, several, _advice(claim)])
    header = ["model", "against", "questions", "right, %", "the other, %", "p by seeds", "seeds"]
    return grid([*header, "so"], rows)


def losses() -> str:
    """Makes the table of gains in log-perplexity, nats per token."""
    rows = []
    for claim in LOSSES:
        one, other = (figures(runs, claim.split) for runs in (claim.runs, claim.others))
        found = paired.difference(one, other)
        by_seeds = significance.seeds_test([*one.losses], [*other.losses])
        gain, by_sentences, tie = f"{other.loss - one.loss:.3f}", "", by_seeds >= LEVEL
        if found is not None:
            gain += " [{:.3f}, {:.3f}]".format(*found.interval)
            by_sentences, tie = _p(found.p), found.tie or found.undecided
        verdict = "not told apart: " * tie
        cells = [claim.model, claim.opponent, claim.text, verdict + gain, by_sentences]
        several = f"{len(one.losses)} and {len(other.losses)}"
        rows.append([*cells, _p(by_seeds), several, _advice(claim)])
    header = ["model", "against", "text", "nats below it, 95 %", "p by sentences", "p by seeds"]
    return grid([*header, "seeds", "so"], rows)


def _advice(claim) -> str:
    return f"[{claim.advice}](results/{claim.where})"


def _p(p):
    return p_text(p).removeprefix("p = ").removeprefix("p ")


def figures(runs: tuple[str, ...], split: str) -> Runs:
    """Reads the figures of the seeds of a recipe that do not learn from the judged text."""
    paths = [f"{every_run()[run][0]}:{run}" for run in runs]
    of_split = {}
    for path, columns in results.read_results(paths).items():
        for passport in columns.values():
            if (
                passport["split"] == split
                and not learns(passport)
                and not passport["spread_unknown"]
            ):
                of_split[path] = passport
    found = figures_of(Group("", 0, tuple(of_split)), of_split)
    assert found is not None
    return found
