"""The page is whole, loads nothing, and leaves out what is not there."""

import collections
import html.parser
import json
import re
import shutil

import numpy as np
import pytest

from zoo.errors import UserError
from zoo.evaluation import records
from zoo.evaluation.reports.report_html import page, report, subjects
from zoo.evaluation.run import Run

VOID = {"meta", "br", "input"}
SECTIONS = [
    *("curves", "passports", "bands", "text", "judgements"),
    *("translations", "attention", "differences"),
]


class Parser(html.parser.HTMLParser):
    """Checks that elements are closed in their order, and collects attributes."""

    def __init__(self):
        super().__init__()
        self.open, self.attributes, self.names = [], [], collections.Counter()
        self.data = collections.defaultdict(str)

    def handle_starttag(self, tag, attrs):
        self.names[tag] += 1
        self.attributes += [(tag, *one) for one in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.names[tag] += 1
        self.attributes += [(tag, *one) for one in attrs]

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, (tag, self.getpos())

    def handle_data(self, data):
        self.data[self.open[-1] if self.open else ""] += data


def parsed(content):
    parser = Parser()
    parser.feed(content)
    parser.close()
    assert not parser.open
    return parser


@pytest.fixture(scope="module")
def content(two_runs):
    return report.document(subjects.read(two_runs))


def test_the_document_is_valid_and_loads_nothing(content):
    found = parsed(content)
    ids = [value for _, name, value in found.attributes if name == "id"]
    assert len({*ids}) == len(ids) and [one for one in ids if one in SECTIONS] == SECTIONS
    links = [value for _, name, value in found.attributes if name in ("href", "src", "action")]
    assert links == [f"#{name}" for name in SECTIONS]
    assert not re.search(r"https?://|@import|url\(|\bfetch\(|XMLHttpRequest|WebSocket", content)
    assert not {"link", "img", "iframe", "object", "embed"} & found.names.keys()
    labels = [value for _, name, value in found.attributes if name == "aria-labelledby"]
    assert {*labels} <= {*ids}


def test_the_script_is_the_one_that_the_policy_allows(content):
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', content)
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-")
    assert content.count("<script>") == 1


def test_the_same_inputs_give_the_same_bytes(two_runs, content, tmp_path):
    assert report.document(subjects.read(two_runs)) == content
    said = []
    report.report(two_runs, tmp_path / "r.html", log=said.append)
    assert (tmp_path / "r.html").read_text(encoding="utf-8") == content
    assert said == [f"wrote {tmp_path / 'r.html'}"]


def test_details_have_what_the_model_computes(two_runs, content):
    (plain,) = re.findall(r'id="words-1">(.*?)</script>', content)
    details = json.loads(plain)
    run = Run.load(two_runs[1])
    corpus = run.read("validation")
    _, scores = run.score(corpus)
    assert [one["word"] for one in details[:3]] == [*corpus.sentences[0], "</s>"][:3]
    for detail, log_prob in zip(details, scores.log_prob.tolist(), strict=False):
        assert detail["about"][0].startswith(f"surprisal {-log_prob:.2f} nats")
        (part,) = detail["parts"]
        assert len(part["best"]) == 5
        assert part["why"][-1] == ["sum, log p(x | h)", f"−{-log_prob:.2f}"]


def test_two_runs_are_side_by_side(content):
    after = content[content.index('<section id="differences"') :]
    assert "softmax and log-linear, validation" in after
    assert re.search(r"(is below|a tie)", after) and "each context once" in after
    assert 'id="words-0-1"' in content


def test_judgements_have_counts_and_intervals(content):
    inside = content[content.index('<section id="judgements"') : content.index('id="attention"')]
    assert "number, 1 (7)" in inside and re.search(r"\d % \[[\d.]+, [\d.]+\], \d of 7", inside)


@pytest.mark.slow
def test_an_unjudged_translator_shows_its_attention(translator):
    content = report.document(subjects.read([translator]), sentences=3)
    parsed(content)
    assert content.count('<svg class="attention"') == 4
    assert "has no results: python -m zoo evaluate" in content
    assert "give runs of two recipes or more to see them side by side" in content
    assert content.count('class="source"') >= 3


def test_what_a_record_and_an_export_lack_is_told(two_runs, tmp_path):
    passports = {}
    for place, passport in ((p, r) for p, r in _results(two_runs[0])):
        passports[place] = passport
    file = tmp_path / "kept.jsonl"
    records.write(file, [records.Record("first", {}, passports)], {})
    content = report.document(subjects.read([str(file), "models/micro"]), sentences=2)
    parsed(content)
    assert "first</strong>: left out: a record keeps results alone" in content
    assert "metrics.jsonl is not in models/micro" in content


def _results(folder):
    paths = sorted(Run.load(folder).path.joinpath("results").glob("*.json"))
    return [(path.stem, json.loads(path.read_text())) for path in paths]


def test_a_given_text_is_shown(two_runs, tmp_path):
    text = tmp_path / "given.txt"
    text.write_text("word1 word2\n\nword3\nword4\n")
    content = report.document(subjects.read(two_runs), text=str(text), sentences=2)
    assert f"{text}: the first 2 sentences, 5 counted tokens" in content


def test_errors_of_users_are_sentences(two_runs, tmp_path):
    with pytest.raises(UserError, match="does not hold a run that can be read"):
        report.report([str(tmp_path / "nothing")], tmp_path / "r.html")
    with pytest.raises(UserError, match="are one folder: give each run once"):
        report.report([two_runs[0], two_runs[0]], tmp_path / "r.html")
    with pytest.raises(UserError, match=r"the report .* cannot be written"):
        report.report(two_runs, tmp_path / "none" / "r.html")
    with pytest.raises(UserError, match=r"none\.txt does not exist"):
        report.report(two_runs, tmp_path / "r.html", text=str(tmp_path / "none.txt"))
    assert not (tmp_path / "r.html").exists()


def test_an_untrained_run_is_told(two_runs, tmp_path):
    copy = tmp_path / "untrained"
    shutil.copytree(two_runs[0], copy)
    shutil.rmtree(copy / "checkpoints")
    shutil.rmtree(copy / "results")
    content = report.document(subjects.read([str(copy)]))
    assert "has no checkpoint of a validated model yet" in content


def channels(colour):
    """Relative luminance of #rrggbb, by WCAG 2."""
    values = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in values]
    return np.dot(linear, [0.2126, 0.7152, 0.0722])


def contrast(one, other):
    low, high = sorted([channels(one), channels(other)])
    return (high + 0.05) / (low + 0.05)


def test_contrast_is_enough_in_light_and_dark():
    style = page.part("page.css")
    light, dark = (dict(re.findall(r"--(\w+): (#\w{6})", part)) for part in _themes(style))
    assert light.keys() == dark.keys() and contrast("#000000", "#ffffff") == pytest.approx(21)
    for theme in (light, dark):
        for name in ("text", "muted", "link", "strong"):
            assert contrast(theme[name], theme["background"]) >= 4.5, name
            assert contrast(theme[name], theme["panel"]) >= 4.5, name
        for level in ("s0", "s1", "s2", "s3", "s4", "s5", "first", "first2", "first3"):
            assert contrast(theme["word"], theme[level]) >= 4.5, level
        for colour in ("c0", "c1", "c2", "c3", "c4", "c5", "bar", "focus"):
            assert contrast(theme[colour], theme["background"]) >= 3, colour


def _themes(style):
    first, second = re.findall(r":root \{(.*?)\}", style, re.DOTALL)[:2]
    return first, second
