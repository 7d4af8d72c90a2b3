"""The page is whole, loads nothing, and leaves out what is not there."""

import collections
import html.parser
import itertools
import json
import re
import shutil

import numpy as np
import pytest

import zoo
from zoo.errors import UserError
from zoo.lab.commands import command_table
from zoo.lab.comparison import (
    charts,
    learning_curves,
    page_report,
    page_text,
    plot_style,
)
from zoo.lab.evaluation import item_scores, records, results, translation_quality
from zoo.lab.evaluation.run import Run

VOID = {"meta", "br", "input"}
SECTIONS = ["passports", "curves", "bands", "text", "judgements", "differences"]


class Parser(html.parser.HTMLParser):
    """Checks that elements are closed in their order, and collects attributes."""

    def __init__(self):
        super().__init__()
        self.open, self.attributes, self.names = [], [], collections.Counter()
        self.data = collections.defaultdict(str)

    def handle_starttag(self, tag, attrs):
        self.names[tag] += 1
        self.attributes += [(tag, *attribute) for attribute in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.names[tag] += 1
        self.attributes += [(tag, *attribute) for attribute in attrs]

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
    return page_report.build_page(page_report.load_comparison(two_runs))


def test_the_document_is_valid_and_loads_nothing(content):
    page = parsed(content)
    ids = [value for _, name, value in page.attributes if name == "id"]
    assert (
        len({*ids}) == len(ids) and [section for section in ids if section in SECTIONS] == SECTIONS
    )
    links = [value for _, name, value in page.attributes if name in ("href", "src", "action")]
    assert links == [f"#{name}" for name in SECTIONS]
    assert not re.search(r"https?://|@import|url\(|\bfetch\(|XMLHttpRequest|WebSocket", content)
    assert not {"link", "img", "iframe", "object", "embed"} & page.names.keys()
    labels = [value for _, name, value in page.attributes if name == "aria-labelledby"]
    assert {*labels} <= {*ids}


def names_of(content):
    """The sections of a page, in order."""
    return re.findall(r'<section id="([^"]*)"', content)


@pytest.mark.slow
def test_sections_are_those_that_the_runs_can_have(two_runs, translator):
    page = page_report.build_page(page_report.load_comparison(two_runs[:1]), sentences=2)
    assert names_of(page) == SECTIONS[:-1]  # nothing stands beside it
    translations = page_report.build_page(page_report.load_comparison([translator]), sentences=2)
    sections = ["passports", "curves", "bands", "text", "translations", "attention"]
    assert names_of(translations) == sections  # no pairs judge it


@pytest.mark.slow
def test_no_section_is_empty(two_runs, translator, inattentive):
    """Pairs do not judge translators, and attention is of the translators that have it."""
    plain_page = page_report.build_page(page_report.load_comparison([inattentive]), sentences=2)
    assert names_of(plain_page) == ["passports", "curves", "bands", "text", "translations"]
    mixed_page = page_report.build_page(
        page_report.load_comparison([two_runs[0], translator]), sentences=2
    )
    assert "left out" not in section_of(mixed_page, "judgements") + section_of(
        mixed_page, "attention"
    )
    assert '<div class="matrix"' in section_of(mixed_page, "attention")


@pytest.mark.slow
def test_recipes_have_the_labels_that_are_given(two_runs):
    runs = page_report.load_comparison(two_runs, ["plain", "of features"])
    content = page_report.build_page(runs, sentences=2)
    assert "<title>Report: plain; of features</title>" in content
    for name in ("judgements", "differences"):
        section = section_of(content, name)
        assert "plain" in section and "of features" in section
        assert "softmax" not in section and "log-linear" not in section
    assert "<strong>plain</strong>: " in content  # beside its folder
    with pytest.raises(UserError, match="label"):
        page_report.load_comparison(two_runs, ["plain"])


@pytest.mark.slow
def test_a_text_of_new_words_is_shown_under_a_lexicon_with_them(two_runs, tmp_path):
    text, words = tmp_path / "text.txt", tmp_path / "words.txt"
    text.write_text("word1 newcomer word2\n")
    words.write_text("newcomer\n")
    arguments = ["compare", two_runs[1], "--text", str(text), "--page", str(tmp_path / "r.html")]
    details = []
    for options in ([], ["--add-words", str(words)]):
        command_table.main([*arguments, *options])
        content = (tmp_path / "r.html").read_text(encoding="utf-8")
        (plain,) = re.findall(r'id="words-0">(.*?)</script>', content)
        details.append(json.loads(plain)[1]["about"])
    assert ["read as an unknown word" in lines for lines in details] == [True, False]


def test_the_script_is_the_one_that_the_policy_allows(content):
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', content)
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-")
    assert content.count("<script>") == 1


def test_the_same_inputs_give_the_same_bytes(two_runs, content, tmp_path, output):
    assert page_report.build_page(page_report.load_comparison(two_runs)) == content
    page_report.write_page(two_runs, tmp_path / "r.html")
    assert (tmp_path / "r.html").read_text(encoding="utf-8") == content
    assert output == [f"wrote {tmp_path / 'r.html'}"]


def test_details_have_what_the_model_computes(two_runs, content):
    (plain,) = re.findall(r'id="words-1">(.*?)</script>', content)
    details = json.loads(plain)
    run = Run.load(two_runs[1])
    corpus = run.read("validation")
    _, scores = run.score_corpus(corpus)
    assert [detail["word"] for detail in details[:3]] == [*corpus.sentences[0], "</s>"][:3]
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
    inside = content[content.index('<section id="judgements"') : content.index('id="differences"')]
    assert "number, 1 (7)" in inside and re.search(
        r">\d+\.\d</td><td[^>]*>\[[\d.]+, [\d.]+\]</td><td[^>]*>7</td>", inside
    )


def section_of(content, name):
    """The HTML of a section."""
    return content.partition(f'<section id="{name}"')[2].partition("</section>")[0]


@pytest.mark.slow
def test_seeds_of_a_recipe_are_one(two_runs, second_seed):
    runs = [*two_runs, second_seed]
    content = page_report.build_page(page_report.load_comparison(runs), sentences=2)
    parsed(content)
    figures = []
    for folder in (two_runs[0], second_seed):
        (path,) = Run.load(folder).path.glob("results/validation.*.json")
        figures.append(json.loads(path.read_text())["figures"]["log_perplexity"])
    assert "<title>Report: softmax, 2 seeds; log-linear</title>" in content
    passports = section_of(content, "passports")
    (row,) = re.findall(r"<tr><th[^>]*>softmax, 2 seeds</th>(.*?)</tr>", passports)[1:]
    assert f">{np.mean(figures):.4f}</td>" in row
    assert f"[{min(figures):.4f}, {max(figures):.4f}]" in row
    curves = section_of(content, "curves")
    assert 'class="shade"' in curves and "softmax, 2 seeds</th>" in curves
    assert re.findall(r'data-shows="(\d)"', curves) == ["0", "1"]
    judged = section_of(content, "judgements")
    assert re.search(r"\[[\d.]+, [\d.]+\]</td><td[^>]*>7</td>", judged)
    assert "softmax, 2 seeds and log-linear, validation" in section_of(content, "differences")
    text = section_of(content, "text")
    assert "Of several seeds of a recipe the first is shown." in text and "softmax_1" not in text


def test_a_record_shows_its_curve_and_its_intervals(two_runs, tmp_path):
    run = Run.load(two_runs[0]).path
    passports = dict(_results(two_runs[0]))
    name = next(place for place, passport in passports.items() if passport["kind"] == "perplexity")
    arrays = item_scores.read(results.read_passport(run / "results" / f"{name}.json"))
    lines = learning_curves.read_metrics(run / "metrics.jsonl", {})
    recipe = json.loads((run / "experiment.json").read_text())
    file = tmp_path / "kept.jsonl"
    records.write(
        file, [records.Record("first", recipe, passports, lines)], {"first": {name: arrays}}
    )
    content = page_report.build_page(page_report.load_comparison([str(file)]), sentences=2)
    run_page = page_report.build_page(page_report.load_comparison([two_runs[0]]), sentences=2)
    for section in ("curves", "bands"):
        chart = section_of(content, section)
        assert '<svg class="chart"' in chart and "left out" not in chart
        assert chart.replace("first", "softmax") == section_of(run_page, section)


@pytest.mark.slow
def test_bleu_of_seeds_is_a_mean_with_its_range(translated):
    content = section_of(
        page_report.build_page(page_report.load_comparison(translated), sentences=2), "translations"
    )
    (path,) = Run.load(translated[0]).path.glob("results/translation-*.json")
    figures = json.loads(path.read_text())["figures"]
    bleu, exact = (figures[name]["score"] for name in ("BLEU", "exact match"))
    assert "translator, 2 seeds</th>" in content and ">beam 2</td>" in content
    assert f"{bleu + 1:.2f} [{bleu:.2f}, {bleu + 2:.2f}]</td>" in content
    assert f"{exact:.2f} [{exact:.2f}, {exact:.2f}]</td>" in content
    single = section_of(
        page_report.build_page(page_report.load_comparison(translated[:1]), sentences=2),
        "translations",
    )
    (row,) = translation_quality.compare(
        ["one"],
        [translation_quality.read(path)],
        Run.load(translated[0]).read("test").sentences,
    )
    low, high = row["BLEU"]["interval"]
    assert f"{bleu:.2f} [{low:.2f}, {high:.2f}]</td>" in single


@pytest.mark.slow
def test_what_a_record_and_an_export_lack_is_told(two_runs, tmp_path):
    passports = {}
    for place, passport in ((p, r) for p, r in _results(two_runs[0])):
        passports[place] = passport
    file = tmp_path / "kept.jsonl"
    records.write(file, [records.Record("first", {}, passports)], {})
    content = page_report.build_page(
        page_report.load_comparison([str(file), "models/micro"]), sentences=2
    )
    parsed(content)
    assert "first</strong>: left out: a record keeps results alone" in content
    assert "metrics.jsonl is not in models/micro" in content


def _results(folder):
    paths = sorted(Run.load(folder).path.joinpath("results").glob("*.json"))
    return [(path.stem, json.loads(path.read_text())) for path in paths]


@pytest.mark.slow
def test_a_given_text_is_shown(two_runs, tmp_path):
    text = tmp_path / "given.txt"
    text.write_text("word1 word2\n\nword3\nword4\n")
    content = page_report.build_page(
        page_report.load_comparison(two_runs), text=str(text), sentences=2
    )
    assert f"{text}: the first 2 sentences, 5 counted tokens" in content


def test_sentences_of_a_given_text_begin_with_an_empty_state(two_runs, tmp_path):
    text = tmp_path / "given.txt"
    text.write_text("word1 word2\nword3 word4\n")
    page_run = page_report.load_comparison(two_runs).available_runs[0]["softmax"]
    rows = page_text.score_text("softmax", 0, page_run, None, str(text), 2).rows
    run = zoo.load(two_runs[0])
    expected = [
        -float(run.log_probs(words[:at])[run.id(word)])
        for words in (["word1", "word2"], ["word3", "word4"])
        for at, word in enumerate([*words, "</s>"])
    ]
    np.testing.assert_allclose([row.surprisal_nats for row in rows], expected, rtol=1e-5)


def test_errors_of_users_are_sentences(two_runs, tmp_path):
    with pytest.raises(UserError, match="does not hold a run that can be read"):
        page_report.write_page([str(tmp_path / "nothing")], tmp_path / "r.html")
    with pytest.raises(UserError, match="are one folder: give each run once"):
        page_report.write_page([two_runs[0], two_runs[0]], tmp_path / "r.html")
    with pytest.raises(UserError, match=r"the report .* cannot be written"):
        page_report.write_page(two_runs, tmp_path / "none" / "r.html")
    with pytest.raises(UserError, match=r"none\.txt does not exist"):
        page_report.write_page(two_runs, tmp_path / "r.html", text=str(tmp_path / "none.txt"))
    assert not (tmp_path / "r.html").exists()


def test_an_untrained_run_is_told(two_runs, tmp_path):
    copy = tmp_path / "untrained"
    shutil.copytree(two_runs[0], copy)
    shutil.rmtree(copy / "checkpoints")
    shutil.rmtree(copy / "results")
    content = page_report.build_page(page_report.load_comparison([str(copy)]))
    assert "has no checkpoint of a validated model yet" in content


def channels(colour):
    """Relative luminance of #rrggbb, by WCAG 2."""
    values = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in values]
    return np.dot(linear, [0.2126, 0.7152, 0.0722])


def contrast(first, second):
    low, high = sorted([channels(first), channels(second)])
    return (high + 0.05) / (low + 0.05)


def test_contrast_is_enough_in_light_and_dark():
    style = page_report.read_resource("page.css")
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


# Machado, Oliveira and Fernandes (2009), severity 1, for linear RGB.
VISIONS = {
    "usual": np.eye(3),
    "protanopia": [[0.1523, 1.0526, -0.2049], [0.1145, 0.7863, 0.0992], [-0.0039, -0.0481, 1.0520]],
    "deuteranopia": [[0.3673, 0.8606, -0.228], [0.2801, 0.6725, 0.0474], [-0.0118, 0.0429, 0.9689]],
    "tritanopia": [[1.2555, -0.0767, -0.1788], [-0.0784, 0.9308, 0.1476], [0.0047, 0.6914, 0.3039]],
}


def lab(colour, vision):
    """CIE L*a*b* of #rrggbb (D65) as somebody sees it."""
    values = np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    linear = np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)
    visible = np.clip(np.asarray(vision) @ linear, 0, 1)
    to_xyz = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    xyz = np.asarray(to_xyz) @ visible / [0.9505, 1, 1.089]
    x, y, z = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("vision", VISIONS)
def test_colours_of_recipes_are_far_apart_with_any_colour_vision(vision):
    for part in _themes(page_report.read_resource("page.css")):
        colours = re.findall(r"--c\d: (#\w{6})", part)
        points = [lab(colour, VISIONS[vision]) for colour in colours]
        assert len(points) == 6
        for first, second in itertools.combinations(points, 2):
            assert np.linalg.norm(first - second) >= 25


def test_pictures_and_the_page_have_the_same_colours_and_marks():
    light, _ = _themes(page_report.read_resource("page.css"))
    assert tuple(re.findall(r"--c\d: (#\w{6})", light)) == plot_style.COLOURS
    marks = ["circle", "square", "triangle", "diamond", "cross", "plus"]
    assert list(charts.MARKS) == marks and [*plot_style.MARKERS] == ["o", "s", "^", "D", "X", "P"]


def test_a_recipe_keeps_its_colour_in_whatever_order_runs_are_given(two_runs):
    for runs in (two_runs, two_runs[::-1]):
        recipes = page_report.load_comparison(runs).groups
        assert {recipe.colour_number: recipe.name for recipe in recipes} == {
            0: "softmax",
            1: "log-linear",
        }
        assert [recipe.name for recipe in recipes] == [run.rpartition("/")[2] for run in runs]


def _themes(style):
    first, second = re.findall(r":root \{(.*?)\}", style, re.DOTALL)[:2]
    return first, second


def test_unknown_words_are_marked(two_runs, tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("word1 newcomer word2\n")
    content = page_report.build_page(page_report.load_comparison(two_runs[:1]), text=str(text))
    marked = re.findall(r'<span class="w [^"]*unknown"[^>]*data-word="\d"[^>]*>(\w+)<', content)
    assert marked == ["newcomer"]
    assert "read as &lt;unk&gt;, any unknown word" in content
