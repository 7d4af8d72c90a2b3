"""Tables of captions, of a few sentences whose figures sacrebleu or numpy computes."""

import re

import numpy as np
import pytest
from sacrebleu.metrics import BLEU

from records import cells as record_cells
from records import rows, translations
from tests import passports
from zoo.lab.rescoring import Bleu

REFERENCES = ["a b c d e f", "a b d c e", "f e d c b a a", "b c d e f a b c"] * 16
WORDS = (5, 11, 14, 20) * 16  # of the sources
SYSTEMS = {
    "straight": ["a b c d f e", "a b c d e", "f e c d a a b", "b c d e f b a"],
    "reversed": ["a b c d e e", "a b d c e", "f e d c a a b", "b c d e f b a"],
    "five": ["a b c d e f", "a b d c e", "f e d c b a b", "b c d e f a b a"],
}


def count_ngrams(name):
    """The counts of the translations of a system."""
    metric = Bleu()
    pairs = zip(SYSTEMS[name] * 16, REFERENCES, strict=True)
    return np.array([metric.statistics([text], [right])[0] for text, right in pairs])


def bleu(*names):
    """BLEU of the translations of systems together, by sacrebleu."""
    texts = [text for name in names for text in SYSTEMS[name] * 16]
    return BLEU(tokenize="none", force=True).corpus_score(texts, [REFERENCES * len(names)]).score


@pytest.fixture
def made_up_runs(monkeypatch):
    """Figures of made-up runs."""
    systems = dict.fromkeys(rows.REVERSED, "reversed") | dict.fromkeys(rows.STRAIGHT, "straight")
    arrays = {run: count_ngrams(name) for run, name in systems.items()}
    arrays["five"] = count_ngrams("five")
    arrays["source_words"] = np.array(WORDS)
    for system, scorers in rows.LISTS.items():
        for scorer in scorers:
            for way in ("untuned", "alone", "even", "tuned", "oracle"):
                name = "five" if way in ("tuned", "oracle") else "straight"
                name = "reversed" if (scorer, way) == ("itself", "tuned") else name
                arrays[f"lists/{system}/{scorer}/{way}"] = count_ngrams(name)
    passport = passports.make(
        passports.TRANSLATION, figures__chrF2={"score": 22.0, "signature": ""}
    )

    def translation(runs, split, beam):
        return runs[0] if len(runs) == 1 else "five", passport

    def log_probs(run, split="test1"):
        lengths = np.array([2, 1, 1, 3])
        at = np.array([-1.0, -1, -2, -1, -1, -1, -1])
        values = at if run in rows.REVERSED else at - [0.1, 0.1, 0, 0, 0.2, 0.2, 0.2]
        return np.tile(values, 16), np.tile(lengths, 16)

    monkeypatch.setattr(translations, "counts", lambda: arrays)
    monkeypatch.setattr(translations, "translation", translation)
    monkeypatch.setattr(translations, "log_probs", log_probs)
    monkeypatch.setattr(translations, "loss", lambda run, split: np.log(4))
    monkeypatch.setattr(translations, "origin", lambda *arguments, **options: "From records.")
    monkeypatch.setattr(
        translations, "markdown", lambda header, rows, *arguments: translations.grid(header, rows)
    )
    provenance = {"revision": "0123456789", "date": "2026-11-28"}
    machine = {"machine": {"processor": "AMD", "cores": 2}}
    monkeypatch.setattr(record_cells, "read_json", lambda name: provenance | machine)


def cells(table, row):
    """The cells of the row of a table that begins with a name."""
    (line,) = re.findall(rf"^\| {re.escape(row)} \|.*", table, re.MULTILINE)
    return [cell.strip() for cell in line.split("|")[1:-1]]


def test_scores_of_single_models_and_ensembles(made_up_runs):
    table = translations.scores()
    straight, ensemble = cells(table, "one, straight"), cells(table, "five, reversed")
    assert straight[1:6] == ["4.00", "4.00", *[f"{bleu('straight'):.2f}"] * 3]
    assert straight[7:] == ["", "22.0", "26.17"]
    # five equal models have the mean of their equal probabilities
    assert ensemble[1] == f"{np.exp(8 / 7):.2f}"
    assert ensemble[5] == f"{bleu('five'):.2f}"
    assert float(ensemble[7]) == 1  # as good as two, the row above
    assert "with p < 0.001 (beam 12)." in table  # seeds do not differ among themselves


def test_gains_by_length(made_up_runs):
    table = translations.by_length()
    # 0.1 of 2 words, none of 1 and of 1, 0.6 of 3 words
    assert [cells(table, name)[4].split()[0] for name in ("5-9", "10-12", "13-16")] == [
        "0.100",
        "0.000",
        "0.000",
    ]
    longest, all_sentences = cells(table, "17 and more"), cells(table, "all")
    assert longest[1:4] == ["16", "1.200", "1.000"]
    assert longest[4] == "0.200 [0.200, 0.200]"
    assert all_sentences[1:4] == ["64", f"{8.8 / 7:.3f}", f"{8 / 7:.3f}"]
    gain = bleu("reversed") - bleu("straight")
    assert all_sentences[5:7] == [f"{bleu(name):.2f}" for name in ("straight", "reversed")]
    assert all_sentences[7].startswith(f"{gain:.2f} [")
    assert "is 0.100 [0.100, 0.100] above the shortest" in table


def test_lists_before_and_after(made_up_runs):
    table = translations.lists()
    first, five, oracle = re.findall(r"^\| attention \| (?:nothing|five|the).*", table, re.M)
    assert f" {bleu('straight'):.2f} [" in first
    assert f"| {bleu('straight'):.2f} | {bleu('straight'):.2f} | {bleu('five'):.2f} [" in five
    assert f" {bleu('five'):.2f} [" in oracle
    itself = re.findall(r"^\| attention \| itself \|.*", table, re.M)[0].split("|")
    assert itself[3].strip() == itself[4].strip() == itself[7].strip() == ""
    assert itself[5].strip().startswith(f"{bleu('reversed'):.2f} [")
    assert table.count("| attention |") == 6 and table.count("| one, reversed (seed 0) |") == 4
    assert "against their choice from the lists of one, p = 1.000" in table
    assert "64 sentences; revision 0123456; AMD, 2 cores; 2026-11-28." in table
