"""python -m zoo translate and compare, of two runs that were hardly trained."""

import dataclasses
import io
import json
import re
import shutil
import sys

import jax.numpy as jnp
import numpy as np
import pytest

import zoo
from tests import scored_sentences
from tests.lab.training import small
from tests.lab.training.test_tasks_translation import MODEL, experiment
from zoo.attention import Luong
from zoo.decoding import BeamSearch, Sampling, steps
from zoo.errors import UserError
from zoo.heads import AdaptiveSoftmax
from zoo.lab.commands import command_table
from zoo.lab.evaluation import translation_quality
from zoo.lab.evaluation.run import Run
from zoo.lab.evaluation.translators import Translator
from zoo.models import LanguageModel

# Five models are trained for them: test_loaded has a translation for every day.
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """{name: a run}; do not write to them."""
    runs = {}
    models = {
        "one": MODEL,
        "two": dataclasses.replace(
            MODEL, head=AdaptiveSoftmax((40, 100), 2), order="source_reversed"
        ),
        "turned": dataclasses.replace(MODEL, order="target_reversed"),
        "attentive": dataclasses.replace(MODEL, attention=Luong(), order="source_reversed"),
        "language": LanguageModel(MODEL.embedding, MODEL.core, MODEL.head),
    }
    for name, model in models.items():
        runs[name] = tmp_path_factory.mktemp(name)
        small.run_in(runs[name], experiment(model, epochs=1))
    return runs


@pytest.fixture(scope="module")
def translator(folders):
    return Translator((Run.load(folders["one"]),))


@pytest.fixture(scope="module")
def sources(translator):
    """Some of the training split, all of whose words are known."""
    run = translator.runs[0]
    all_sources = run.experiment.source_corpus(run.read("train")).sentences
    return sorted(all_sources, key=len)[::10][:5]


@pytest.fixture
def call(capsys, monkeypatch):
    """call(*words, text=None) -> (stdout, stderr) of the program."""

    def call(*words, text=None):
        monkeypatch.setattr(sys, "stdin", io.StringIO(text))
        command_table.main([str(word) for word in words])
        return capsys.readouterr()

    return call


def best_by_hand(run, source, length):
    """The most probable word again and again, by the probabilities that are judged."""
    model, lexicon = run.experiment.model, run.lexicon
    ids = [run.source_lexicons[0].ids[word] for word in source]
    if model.order == "source_reversed":
        ids = ids[::-1]
    ids_chosen = []
    for _ in range(length):
        words = jnp.asarray([[lexicon.boundary_id, *ids_chosen]], jnp.int32)
        all_words = jnp.arange(len(lexicon))[:, None]
        encoded = model.encode(run.params, run.tables, jnp.asarray([ids]), jnp.asarray([len(ids)]))
        hidden, _ = model.states(run.params, run.tables, encoded, words)
        hidden = jnp.repeat(hidden[:, -1:], len(lexicon), axis=0)
        log_prob = model.head.log_prob(
            model.head_params(run.params), run.tables["head"], hidden, all_words
        )
        ids_chosen.append(int(log_prob[:, 0].argmax()))
        if ids_chosen[-1] == lexicon.boundary_id:
            break
    words = [lexicon.words[word] for word in ids_chosen if word != lexicon.boundary_id]
    return words[::-1] if model.order == "target_reversed" else words


@pytest.mark.parametrize("name", ["one", "two", "turned"])
def test_a_beam_of_one_says_the_most_probable_words(folders, sources, name):
    run = Run.load(folders[name])
    translator = Translator((run,))
    translations = translator.translate(sources, BeamSearch(1, longest=4))
    for source, (best,) in zip(sources, translations, strict=True):
        assert translator.words(best) == best_by_hand(run, source, 4)


def test_scores_are_those_that_are_judged(translator):
    """Hypotheses that ended, forced through the exact probabilities."""
    run = translator.runs[0]
    corpus = run.read("test")
    sources = run.experiment.source_corpus(corpus).sentences
    translations = translator.translate(sources, BeamSearch(4, 4, longest=30))
    pairs = [
        (source, hypothesis)
        for source, hypotheses in zip(sources, translations, strict=True)
        for hypothesis in hypotheses
        if hypothesis.complete
    ]
    assert len(pairs) > 5
    text = dataclasses.replace(
        corpus,
        sentences=[translator.words(hypothesis) for _, hypothesis in pairs],
        source_text=dataclasses.replace(
            corpus.source_text, sentences=[source for source, _ in pairs]
        ),
    )
    _, scores = run.score_corpus(text)
    expected = np.concatenate([hypothesis.log_probs for _, hypothesis in pairs])
    np.testing.assert_allclose(expected, scores.log_prob, rtol=1e-4, atol=1e-5)


def test_lines_keep_their_order_and_empty_ones_stay_empty(call, folders, translator, sources):
    lines = [" ".join(words) for words in sources]
    text = "\n".join([lines[0], "", lines[1], "   ", *lines[2:], "qwx " + lines[0]]) + "\n"
    output, errors = call("translate", folders["one"], "--beam", 3, "--longest", 9, text=text)
    output = output.split("\n")
    assert output.pop() == ""
    assert len(output) == 8 and output[1] == output[3] == ""
    settings = BeamSearch(3, longest=9)
    expected = [
        " ".join(translator.words(hypothesis))
        for (hypothesis,) in translator.translate(sources, settings)
    ]
    assert [output[0], output[2], *output[4:7]] == expected
    count = len(text.split())
    share = f"1 of the {count} words of the text are unknown to the run ({1 / count:.2%})"
    empty = output.count("") - 2
    note = f"{empty} of 8 lines have a translation without words\n" if empty else ""
    assert errors == f"{share}: 'qwx'\n{note}"


def test_standard_input_is_read_as_a_file_is(call, folders, sources, monkeypatch, capsys):
    line = " ".join(sources[0])
    content = f"\ufeff{line}\n\n{line}\r\n{line}\rx".encode()
    arguments = ["translate", str(folders["one"]), "--beam", "1"]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    command_table.main(arguments)
    lines = capsys.readouterr().out.split("\n")
    assert len(lines) == 5 and lines[0] == lines[2] != "" and lines[1] == lines[4] == ""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a\n\xff\xfe\n")))
    with pytest.raises(UserError, match="standard input, line 2: not UTF-8"):
        command_table.main(arguments)


class Terminal(io.StringIO):
    """Gives lines as if typed at a terminal, and keeps the output before each of them."""

    def __init__(self, lines, printed):
        super().__init__(lines)
        self.printed, self._capture = [], printed

    def isatty(self):
        return True

    def readline(self):
        self.printed.append(self._capture.readouterr())
        return super().readline()


def test_a_sentence_that_is_typed_is_translated_at_once(folders, sources, monkeypatch, capsys):
    lines = [" ".join(words) for words in sources[:2]]
    command = ["translate", str(folders["one"]), "--beam", "1"]
    monkeypatch.setattr(sys, "stdin", io.StringIO("\n".join(lines)))
    command_table.main(command)
    expected = capsys.readouterr().out.splitlines(keepends=True)
    monkeypatch.setattr(sys, "stdin", terminal := Terminal("\n".join(lines), capsys))
    command_table.main(command)
    assert terminal.printed == [("", "> "), (expected[0], "> "), (expected[1], "> ")]
    assert capsys.readouterr() == ("", "\n")


@pytest.fixture
def listed(call, folders, translator, sources, tmp_path):
    """(rows of the lists of two sentences and an empty line, the hypotheses, the file)."""
    file, output = tmp_path / "in.txt", tmp_path / "out.nbest"
    file.write_text(" ".join(sources[0]) + "\n\n" + " ".join(sources[1]))
    options = ("--nbest", 3, "--beam", 4, "--length-normalisation", 0.7)
    assert call("translate", folders["one"], file, *options, "--output", output) == ("", "")
    settings = BeamSearch(4, 3, length_normalisation=0.7, longest=200)
    hypotheses = translator.translate([sources[0], [], sources[1]], settings)
    return (
        output.read_text().split("\n"),
        hypotheses,
        scored_sentences.read(str(output), nbest=True),
    )


def test_nbest_lists_are_those_that_score_reads(listed):
    rows, _, read = listed
    assert [sentence.id for sentence in read] == ["0", "0", "0", "1", "2", "2", "2"]
    assert rows[3] == "1 |||  ||| LogProb= 0 Length= 0 Ended= 1 ||| 0"


def test_a_row_of_a_list_has_its_features_and_its_normalised_score(listed, translator):
    rows, nbest_lists, _ = listed
    hypotheses = [hypothesis for nbest_list in nbest_lists for hypothesis in nbest_list]
    for row, hypothesis in zip([*rows[:3], *rows[4:7]], hypotheses, strict=True):
        pattern = r"\d \|\|\| (.*) \|\|\| LogProb= (\S+) Length= (\d+) Ended= (\d) \|\|\| (\S+)"
        words, log_prob, length, ended, score = re.fullmatch(pattern, row).groups()
        assert words.split() == translator.words(hypothesis)
        assert (int(length), bool(int(ended))) == (len(hypothesis.log_probs), hypothesis.complete)
        np.testing.assert_allclose(
            [float(log_prob), float(score)], [hypothesis.log_prob, hypothesis.score]
        )
        np.testing.assert_allclose(float(score), float(log_prob) / int(length) ** 0.7, rtol=1e-5)


DRAWS = ("--sample", "--seed", "3", "--temperature", "1.5", "--longest-ratio", "1")


@pytest.fixture
def sample_command(call, folders, sources, tmp_path):
    """(the texts: an empty line and the sources, draw(*options) -> what is printed of them)."""
    file, texts = tmp_path / "sources", ["", *map(" ".join, sources)]
    file.write_text("".join(f"{line}\n" for line in texts), encoding="utf-8")
    return texts, lambda *options: call("translate", folders["two"], str(file), *DRAWS, *options)[0]


def test_draws_depend_on_the_seed_and_not_on_the_batch(sample_command):
    _, draw = sample_command
    assert draw("--batch", "2") == draw() != draw("--seed", "4")


def test_a_loaded_run_draws_what_the_command_draws(sample_command, folders):
    texts, draw = sample_command
    sampling = Sampling(temperature=1.5, seed=3)
    samples = zoo.load_translator(folders["two"]).translate(
        texts, sampling=sampling, longest_ratio=1
    )
    assert samples == draw().split("\n")[:-1]


@pytest.mark.parametrize("options", [{"nbest": 2}, {"beam": 3}], ids=str)
def test_a_loaded_run_searches_or_draws(folders, options):
    with pytest.raises(UserError, match="and sampling exclude each other"):
        zoo.load_translator(folders["two"]).translate([""], sampling=Sampling(), **options)


@pytest.fixture
def hot(call, folders, sources, tmp_path):
    """hot(*options) -> (stdout, stderr) of draws of the sources at a high temperature."""
    file = tmp_path / "sources"
    file.write_text("".join(f"{' '.join(words)}\n" for words in sources), encoding="utf-8")
    draws = ("translate", folders["two"], str(file), "--sample", "--temperature", "3")
    return lambda *options: call(*draws, *options)


def test_no_more_is_drawn_than_the_ratio_allows(hot, sources):
    lengths = {}
    for ratio in (0.5, 4):
        lines = hot("--longest-ratio", ratio)[0].splitlines()
        lengths[ratio] = [len(line.split()) for line in lines]
        for words, length in zip(sources, lengths[ratio], strict=True):
            assert length <= ratio * len(words) + 10
    assert max(lengths[4]) > max(lengths[0.5])


def test_the_draws_of_a_line_do_not_depend_on_how_many_are_read_at_a_time(
    hot, sources, monkeypatch
):
    expected = hot("--nbest", 2)
    assert len({*expected[0].split()}) > 2 * len(sources)
    monkeypatch.setattr("zoo.lab.commands.translate._BATCHES", 1)
    assert hot("--nbest", 2, "--batch", 2) == expected


def test_draws_that_are_cut_off_are_counted(hot, sources):
    output, errors = hot("--nbest", 2, "--longest", 1)
    count = sum("Ended= 0" in row for row in output.splitlines())
    assert count > 0 and f"{count} of {2 * len(sources)} translations are cut off" in errors


def test_translations_without_words_are_counted(call, folders, sources):
    lines = [*map(" ".join, sources * 100), ""]
    options = ("--sample", "--temperature", "3", "--longest", "2")
    output, errors = call("translate", folders["two"], *options, text="\n".join(lines) + "\n")
    empty = output.splitlines().count("") - 1  # an empty line stays empty
    note = f"{empty} of 501 lines have a translation without words\n"
    assert empty > 0 and errors.endswith(note)


def test_ratios_are_bounded(hot):
    assert hot("--longest", 5, "--longest-ratio", "1e6")[0]
    for ratio in ("0", "nan", "1e308"):
        with pytest.raises(SystemExit, match="2"):  # as argparse ends
            hot("--longest-ratio", ratio)


def test_an_ensemble_is_the_average_of_its_runs(folders, sources):
    """Of two heads, one run of which reads its source from the end."""
    runs = tuple(Run.load(folders[name]) for name in ("one", "two"))
    ensemble = Translator(runs)
    (hypotheses,) = ensemble.translate(sources[:1], BeamSearch(1, longest=1))
    probs = []
    for run in runs:
        all_hypotheses = Translator((run,)).translate(
            sources[:1], BeamSearch(500, len(run.lexicon), longest=1)
        )
        probs.append(
            {
                hypothesis.words[0] if hypothesis.words else -1: hypothesis.log_prob
                for hypothesis in all_hypotheses[0]
            }
        )
    average = {word: np.logaddexp(p, probs[1][word]) - np.log(2) for word, p in probs[0].items()}
    assert (hypotheses[0].words or [-1]) == [max(average, key=average.get)]
    np.testing.assert_allclose(hypotheses[0].log_prob, max(average.values()), rtol=1e-4)


def test_a_run_with_itself_is_the_run(folders, sources):
    run = Run.load(folders["one"])
    doubled = Translator((run, run), average="logs").translate(sources, BeamSearch(2, longest=5))
    single = Translator((run,)).translate(sources, BeamSearch(2, longest=5))
    assert [hypotheses[0].words for hypotheses in doubled] == [
        hypotheses[0].words for hypotheses in single
    ]


def test_a_language_model_adds_its_log_probabilities(call, folders, sources, tmp_path):
    """Of one token each: log p + 0.7 log p_lm; and one without a weight changes nothing."""
    translator, language = (Run.load(folders[name]) for name in ("one", "language"))
    (tmp_path / "in").write_text("\n".join(map(" ".join, sources)))
    size = len(translator.lexicon)

    def score_all_words(*options):
        text, _ = call(
            *("translate", folders["one"], tmp_path / "in", "--longest", 1, "--beam", size),
            *("--nbest", size, *options),
        )
        scores = [{} for _ in sources]
        for row in text.splitlines():
            number, words, _, score = row.split("|||")
            scores[int(number)][words.strip()] = float(score)
        return scores

    fused = score_all_words("--language-model", folders["language"], "--language-weight", 0.7)
    unfused = score_all_words("--language-model", folders["language"], "--language-weight", 0)
    step = steps.from_language_model(language.experiment.model, language.params, language.tables)
    first = jnp.array([language.lexicon.boundary_id])
    log_probs, _ = step(first, language.experiment.model.initial_carry(1))
    language_log_probs = dict(zip(language.lexicon.words, np.asarray(log_probs[0]), strict=True))
    language_log_probs[""] = language_log_probs.pop(language.lexicon.boundary)
    for fused_scores, scores in zip(fused, unfused, strict=True):
        assert len(fused_scores) == len(scores) == size
        expected = [scores[word] + 0.7 * language_log_probs[word] for word in fused_scores]
        np.testing.assert_allclose([*fused_scores.values()], expected, atol=1e-4)
        assert [*fused_scores.values()] == sorted(fused_scores.values(), reverse=True)
    for fused_scores, scores in zip(unfused, score_all_words(), strict=True):
        np.testing.assert_allclose(
            [fused_scores[word] for word in scores], [*scores.values()], atol=1e-5
        )


def test_alignments_are_what_is_attended_to_most(call, folders, sources, tmp_path):
    """By the weights of the model, whose encoder reads the source from its end."""
    run = Run.load(folders["attentive"])
    model, (source_lexicon,) = run.experiment.model, run.source_lexicons
    file, text = tmp_path / "links", "\n".join([" ".join(sources[3]), "", " ".join(sources[4])])
    options = ("--alignments", file, "--sample", "--temperature", 3, "--longest", 6, "--nbest", 2)
    output, _ = call("translate", folders["attentive"], *options, text=text)
    rows = [row.split(" ||| ") for row in output.splitlines()]
    lines = file.read_text().splitlines()
    assert len(rows) == len(lines) == 5 and lines[2] == ""
    for (number, text_of_row, *_), line_of_links in zip(rows, lines, strict=True):
        source, words = (sources[3], [], sources[4])[int(number)], text_of_row.split()
        source_ids = jnp.asarray([[source_lexicon.ids[word] for word in source][::-1]], jnp.int32)
        inputs = [run.lexicon.boundary_id, *(run.lexicon.ids[word] for word in words)][:-1]
        expected = []
        if inputs:
            weights = model.attention_weights(
                run.params, run.tables, source_ids, jnp.array([len(source)]), jnp.asarray([inputs])
            )[0]
            expected = [f"{int(row[::-1].argmax())}-{t}" for t, row in enumerate(weights)]
        assert line_of_links.split() == expected
    assert max(map(len, lines)) > 4


def test_unknown_words_are_copied_by_attention_and_said_in_the_passport(
    call, folders, sources, tmp_path
):
    run = shutil.copytree(folders["attentive"], tmp_path / "run")
    options = ("translate", run, "--split", "test", "--bleu", "--beam", 1)
    call(*options)
    call(*options, "--unknowns", "attention")
    plain, restored = sorted((run / "results").glob("*.json"), key=lambda path: len(path.name))
    assert "unknowns" not in json.loads(plain.read_text())["decoding"]
    unknowns = json.loads(restored.read_text())["decoding"]["unknowns"]
    assert unknowns == {"by": "attention", "dictionary_sha256": None}


JUDGED = ("--split", "test", "--bleu", "--beam", 2, "--longest", 9)


@pytest.fixture(scope="module")
def judged_once(folders, tmp_path_factory):
    """{name: a run with a result of translations}; do not write to them."""
    runs = {}
    for name in ("one", "two"):
        runs[name] = shutil.copytree(folders[name], tmp_path_factory.mktemp("judged") / name)
        command_table.main([str(word) for word in ("translate", runs[name], *JUDGED)])
    return runs


@pytest.fixture
def judged(judged_once, tmp_path):
    """Copies of both runs, and the result of the first."""
    first_run, second_run = (
        shutil.copytree(judged_once[name], tmp_path / name) for name in ("one", "two")
    )
    (path,) = (first_run / "results").glob("*.json")
    return first_run, second_run, path


def test_bleu_is_kept_with_its_passport(judged):
    passport, path = json.loads(judged[2].read_text()), judged[2]
    assert passport["decoding"]["search"]["beam"] == 2 and passport["tokenizer"] == "none"
    assert len(path.with_suffix(".txt").read_text().splitlines()) == passport["tokens"]


def test_metrics_are_printed_with_their_signatures(call, judged):
    output, _ = call("translate", judged[0], *JUDGED)
    assert "BLEU" in output and "tok:none" in output and "chrF2" in output
    assert re.search(r"exact match \d+\.\d\d", output)


def test_examples_have_source_reference_and_translation(call, judged):
    run, hypotheses = Run.load(judged[0]), judged[2].with_suffix(".txt").read_text().splitlines()
    corpus = run.read("test")
    triples = zip(corpus.source_text.sentences, corpus.sentences, hypotheses, strict=True)
    examples = [
        f"\nsource       {' '.join(source)}\nreference    {' '.join(reference)}\n"
        f"translation  {hypothesis}\n"
        for source, reference, hypothesis in triples
    ]
    for count, options in ((3, ()), (2, ("--examples", 2)), (0, ("--examples", 0))):
        output, _ = call("translate", judged[0], *JUDGED, *options)
        assert output.endswith("".join(examples[:count])), count
        assert output.count("\nsource ") == count


def test_two_runs_are_compared_by_a_paired_test(call, judged):
    first_run, second_run, _ = judged
    table, _ = call("compare", first_run, second_run)
    header, first, second, *_ = (re.split("  +", line) for line in table.splitlines())
    assert header == ["run", "BLEU", "p", "chrF2", "p"]
    assert (first[0], first[2], first[4]) == ("one", "-", "-")
    assert second[0] == "two" and all(0 < float(second[column]) <= 1 for column in (2, 4))


def test_other_tokenizers_are_not_compared(call, judged):
    first_run, second_run, path = judged
    path.write_text(json.dumps(json.loads(path.read_text()) | {"tokenizer": "13a"}))
    with pytest.raises(UserError, match="tokenizer differs: '13a' against 'none'"):
        call("compare", first_run, second_run)


def test_several_results_of_a_split_are_told_apart(call, judged):
    first_run, second_run, path = judged
    call("translate", second_run, *JUDGED, "--length-normalisation", 1)
    table, _ = call("compare", first_run, second_run)
    names = [line.partition("  ")[0] for line in table.splitlines()[1:4]]
    assert names[0] == "one" and names[1] != names[2]
    assert all(name.startswith("two (sentences.beam-2-") for name in names[1:])
    assert "BLEU" in call("compare", path)[0]  # named by its file


def test_scores_of_translations_stand_below_figures_of_texts(call, judged):
    run = judged[0]
    call("evaluate", run, "--split", "test")
    figures, scores = call("compare", run)[0].split("\n\nrun ")
    assert "test, carried: nats" in figures or "test, sentences: nats" in figures
    assert "[" in scores
    # Without the text, the figures are printed all the same.
    (run / "results" / judged[2].with_suffix(".txt").name).unlink()
    figures_alone, errors = call("compare", run)
    assert figures_alone.strip() == figures.strip() and "translations of test: " in errors


def test_translations_that_are_cut_off_are_counted(call, folders, sources):
    text = "\n".join(" ".join(words) for words in sources) + "\n"
    output, errors = call("translate", folders["one"], "--beam", 1, "--longest", 1, text=text)
    # The others have the boundary.
    cut = sum(len(line.split()) == 1 for line in output.splitlines())
    assert cut and f"{cut} of {len(sources)} translations are cut off" in errors


def test_a_translation_is_cut_off_at_its_ratio(call, folders, sources):
    text = "\n".join(" ".join(words) for words in sources) + "\n"
    options = ("--beam", 1, "--longest-ratio", "0.001")
    short, _ = call("translate", folders["one"], *options, text=text)
    assert max(len(line.split()) for line in short.splitlines()) <= 10


def test_another_ratio_stands_in_the_passport(call, folders, tmp_path):
    run = shutil.copytree(folders["one"], tmp_path / "one")
    options = ("--split", "test", "--bleu", "--beam", 1, "--longest", 9)
    call("translate", run, *options)
    call("translate", run, *options, "--longest-ratio", 3)
    plain, with_ratio = sorted(
        (run / "results").glob("*.json"), key=lambda path: path.stat().st_mtime
    )
    assert "longest_ratio" not in json.loads(plain.read_text())["decoding"]
    assert json.loads(with_ratio.read_text())["decoding"]["longest_ratio"] == 3


def test_figures_are_those_of_sacrebleu_s_definition():
    """5 words, one wrong: 4/5 words, 3/4 pairs, 2/3 triples, 1/2 fours."""
    figures = translation_quality.figures(["a b c d e"], ["a b c d f"], "none")
    expected = 100 * (4 / 5 * 3 / 4 * 2 / 3 * 1 / 2) ** 0.25
    np.testing.assert_allclose(figures["BLEU"].score, expected, rtol=1e-6)
    assert "tok:none" in figures["BLEU"].signature
    assert figures["exact match"].score == 0


def test_exact_match_counts_whole_translations():
    figures = translation_quality.figures(
        ["a b", "b", "", "c d"], ["a b", "b b", "", "d c"], "none"
    )
    assert figures["exact match"].score == 50


def test_a_run_without_marks_and_attention_puts_in_no_words(folders, call, tmp_path):
    (tmp_path / "d").write_text("a\tb\n")
    with pytest.raises(UserError, match=r"does not tell which source word an unknown word"):
        call("translate", folders["one"], "--dictionary", tmp_path / "d", text="a\n")
