"""Report of `make quickstart` on models of the micro language beside the language itself.

The language's grammar gives the exact probability of every word of its test text, so a model's
figures stand beside the least that any model could reach, as a whole and by frequency band, and its
agreement beside sentences that the grammar allows and forbids.
"""

import pathlib
from collections.abc import Mapping

import numpy as np

from zoo.data.encoded_text import EncodedText
from zoo.errors import UserError
from zoo.lab.comparison import bar_plots, learning_curves, plot_style
from zoo.lab.comparison.comparison import Comparison
from zoo.lab.comparison.learning_curves import Curve
from zoo.lab.evaluation import minimal_pairs, passport, scored_texts
from zoo.lab.evaluation.passport import Judgement
from zoo.lab.evaluation.perplexity import Scores, perplexity_of
from zoo.lab.evaluation.results import check_comparable
from zoo.lab.evaluation.run import Run
from zoo.lab.runs import output_files
from zoo.lab.table import NATS, PERPLEXITY, Column, Table
from zoo.sources.micro import Micro
from zoo.sources.source import Corpus

PAIRS, PAIRS_SEED = 2000, 7
SPLIT = "test"
AGREEMENT = "micro-agreement"
LANGUAGE = "the language"


def score_by_grammar(language: Micro, corpus: Corpus, text: EncodedText, counted) -> Scores:
    """Scores a text by the exact probabilities of the grammar that made it; boundaries get log p 0.
    `counted` is the mask of tokens that count."""
    log_prob = np.zeros(len(text.words), np.float32)
    for start, sentence in zip(text.starts, corpus.sentences, strict=True):
        log_prob[start : start + len(sentence)] = language.grammar.token_log_probs(sentence)
    return Scores(log_prob, counted)


def judge_agreement(run: Run, pairs: list[tuple[list[str], list[str], dict]]) -> Judgement:
    """Judges a run on (good, bad, traits) pairs, with accuracies by case in the passport."""
    sentence_pairs = [(good, bad) for good, bad, _ in pairs]
    scores = minimal_pairs.score_pairs(run, sentence_pairs)
    cases = {}
    for phenomenon in ("number", "gender"):
        for attractor in (False, True):
            case = (phenomenon, attractor)
            is_case = [(traits["phenomenon"], traits["attractor"]) == case for *_, traits in pairs]
            name = f"{phenomenon}, {'attractor' if attractor else 'no attractor'}"
            cases[name] = scores.select(np.array(is_case, bool)).figures()
    cases["all"] = scores.figures()
    record = minimal_pairs.passport_of(run, AGREEMENT, sentence_pairs, scores, cases=cases)
    return Judgement(run, record, "", scores.answers())


def report_micro(workdirs: list[str]) -> list[pathlib.Path]:
    """Judges runs of the micro language and saves that, prints tables beside the language, and
    draws plots beside the first run; returns the plots' paths."""
    for workdir in workdirs:
        passport.check(workdir)
    comparison = Comparison.from_paths(workdirs)
    runs = {name: Run.load(path) for name, path in comparison.paths.items()}
    language = _shared_language(runs)
    folder = pathlib.Path(workdirs[0]).parent
    files = [folder / name for name in ("training.png", "bands.png", "agreement.png")]
    for path in files:
        plot_style.check_file(path)
    pairs = language.minimal_pairs(PAIRS, PAIRS_SEED)

    texts, agreements = {}, {}
    for name, run in runs.items():
        (scored,) = scored_texts.score(run, [SPLIT])
        texts[name], agreements[name] = scored.judgement(), judge_agreement(run, pairs)
    first = next(iter(runs))
    for name in runs:
        check_comparable(texts[first].passport, texts[name].passport, (first, name))
    for judgement in (*texts.values(), *agreements.values()):
        judgement.keep()

    # Comparable runs share the text and its counted tokens.
    ideal = score_by_grammar(language, scored.corpus, scored.text, scored.scores.counted)
    words_seen = scored.text.occurrences(run.lexicon), scored.text.unknown(run.lexicon)
    band_losses = {row.band: row.log_perplexity for row in ideal.bands(*words_seen)}
    losses = {name: text.passport.figures.log_perplexity for name, text in texts.items()}
    output_files.show(
        _entropy_line(language, run.experiment.vocabulary),
        f"Its test text: {ideal.tokens:,} tokens: {texts[first].passport.counts}.\n",
        *_loss_table({LANGUAGE: ideal.log_perplexity, **losses}).text(),
        *(
            f"{name}: {line.strip()}"
            for name, text in texts.items()
            for line in passport.warnings(text.passport.leak)
        ),
        "\nNats per token by how often the word occurred in training",
        "(no model is below the language on all words together, but one may be within a band)",
        f"{LANGUAGE}: {', '.join(f'{band} {loss:.4f}' for band, loss in band_losses.items())}",
    )
    bar_plots.plot_bands(workdirs, files[1], SPLIT, limit=band_losses)
    output_files.show("\nPairs of a sentence and its ungrammatical twin")
    bar_plots.plot_agreement(workdirs, files[2], f"pairs:{AGREEMENT}")
    return files if _draw_curves(files[0], comparison, language, run) else files[1:]


def _draw_curves(file, comparison, language, run) -> bool:
    """Draws the learning curves above the language's own loss; returns whether a run has one."""
    validations, missing = learning_curves.read_available(
        comparison.paths, learning_curves.WITH_TRAINING["step"]
    )
    seeds = {group: [*group.select(validations).values()] for group in comparison.groups}
    curves = [Curve.from_validations(group, curves) for group, curves in seeds.items() if curves]
    if curves:
        corpus = run.read("validation")
        text = run.experiment.vocabulary.encode(corpus, run.lexicon)
        limit = score_by_grammar(language, corpus, text, text.counted).log_perplexity
        learning_curves.draw_curves(curves, file, limit=limit)
        output_files.show(file)
    output_files.show(*missing.values())
    return bool(curves)


def _shared_language(runs):
    """Returns the micro language of all runs; raises UserError unless they share one."""
    languages = {run.experiment.data for run in runs.values()}
    if len(languages) != 1 or not isinstance(next(iter(languages)), Micro):
        raise UserError("--micro takes runs of one micro language: give runs of its configs.")
    for name, run in runs.items():
        if run.experiment.vocabulary.lower_case:
            raise UserError(
                f"{name} was trained with vocabulary.lower_case=true, and the grammar knows its "
                "words as they are spelt only: train with lower_case=false."
            )
    return languages.pop()


def _entropy_line(language, vocabulary):
    """Describes the language's own entropy and perplexity per token."""
    marks = vocabulary.boundary_marks if vocabulary.boundary == "counted" else 0
    rate = language.entropy_rate(marks)
    perplexity = f"perplexity {perplexity_of(rate):.2f}"
    return f"The micro language: entropy {rate:.4f} nats per token ({perplexity})."


def _loss_table(losses: Mapping[str, float]) -> Table:
    """Returns the table of log-perplexities beside the language's own."""
    columns = Column("test text"), Column("nats per token", NATS), Column("perplexity", PERPLEXITY)
    rows = [
        (name, loss, perplexity_of(loss), "" if name == LANGUAGE else loss - losses[LANGUAGE])
        for name, loss in losses.items()
    ]
    return Table((*columns, Column("above the language", NATS)), rows)
