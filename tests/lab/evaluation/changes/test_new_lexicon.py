"""Words that were not there in training, scored by models that know letters."""

import dataclasses
import json
import sys

import numpy as np
import pytest

import evaluate
from tests.lab.training import small
from tests.marks import slow
from zoo import __main__ as commands
from zoo import priors
from zoo.cores import NGram
from zoo.data import Text
from zoo.data.vocabulary import Vocabulary
from zoo.embeddings import CharCNN, Concat, Features, Lookup
from zoo.errors import UserError
from zoo.experiment import Evaluation, Experiment, Training
from zoo.heads import NCE, CharLSTM, CNNSoftmax, LogLinear, Softmax, UnigramNoise
from zoo.lab.commands import program
from zoo.lab.evaluation import passport, scored_texts
from zoo.lab.evaluation.changes.new_lexicon import NewLexicon, listed_words
from zoo.lab.evaluation.run import Run
from zoo.lab.evaluation.scored_texts import ScoredText
from zoo.layers.char_convolution import Convolution
from zoo.lexicon import Lexicon
from zoo.lexicon.spelling import Spelling
from zoo.models import LanguageModel

TRAIN = "le chat dort .\nles chats dorment .\nle chien voit le chat .\n"
TEST = "le zèbre dort .\nle chien voit les zébus .\n"
SPELLING = Spelling(unit="characters", longest=5)
LETTERS = CharCNN(size=4, network=Convolution(SPELLING, letter_size=3, widths=(2,)))
FEATURES = {"features": (priors.TopWords(count=3),), "background": priors.Unigram(smoothing=0.5)}
HEADS = {
    "cnn": CNNSoftmax(Convolution(SPELLING, letter_size=3, widths=(2,)), correction=2),
    "lstm": CharLSTM(SPELLING, size=6, letter_size=3),
    "features": LogLinear(),
}


def trained_in(folder, embedding, head, **vocabulary):
    """The work directory of a run, trained for an epoch."""
    (folder / "train.txt").write_text(TRAIN, encoding="utf-8")
    (folder / "test.txt").write_text(TEST, encoding="utf-8")
    train = str(folder / "train.txt")
    experiment = Experiment(
        data=Text(train=train, validation=train, tests=(str(folder / "test.txt"),)),
        vocabulary=Vocabulary(**vocabulary),
        model=LanguageModel(embedding, NGram(size=7), head),
        training=Training(batch=2, length=4, epochs=1),
        evaluation=Evaluation(state="sentences", batch=2, length=6),
    )
    return small.run_in(folder / "workdir", experiment)


# Of features, the commands do what they do of letters: the head without spellings stands for it.
@pytest.fixture(scope="module", params=["cnn", *slow("lstm", "features")])
def open_workdir(request, tmp_path_factory):
    """The work directory of a run of an open head, trained for an epoch."""
    folder, head = tmp_path_factory.mktemp(request.param), HEADS[request.param]
    if request.param == "features":
        return trained_in(folder, Features(size=3), head, **FEATURES)
    return trained_in(folder, Concat((Lookup(size=3), LETTERS)), head)


@pytest.fixture
def words_file(tmp_path):
    """Words of the text and another, one twice, with a blank line."""
    path = tmp_path / "words.txt"
    path.write_text("zèbre\nle\ndort\n.\n\nles\nzébus\nchien\nle\nvoit\nours\n", encoding="utf-8")
    return path


def test_marks_of_sentences_are_not_words_of_a_list(words_file):
    """As vocabularies of SRILM have them; unless the lexicon has one as a word of its text."""
    words = ("</s>", "<unk>", "le", "<eos>")
    lexicon = Lexicon(words, np.ones(4, int), unknown="<unk>", boundary="</s>")
    words_file.write_text("<s>\n</s>\n<unk>\n<eos>\n<pad>\nle\nzébus\n", encoding="utf-8")
    assert [*listed_words(str(words_file), lexicon)] == ["<eos>", "le", "zébus"]


def test_a_word_of_a_table_may_have_spaces(tmp_path):
    """As smileys of treebanks have, where no word of the lexicon has one."""
    lexicon = Lexicon(("</s>", "<unk>", "le"), np.ones(3, int), unknown="<unk>", boundary="</s>")
    path = tmp_path / "words.tsv"
    path.write_text('word\tcount\n: )\t2\nle\t3\n""":"\t1\n1\u00a0000\t1\n', encoding="utf-8")
    assert [*listed_words(str(path), lexicon)] == [": )", "le", '":', "1\u00a0000"]


@pytest.mark.slow
def test_another_lexicon_scores_unseen_words(open_workdir, words_file):
    trained = Run.load(open_workdir)
    run = NewLexicon(str(words_file)).apply(trained)
    assert run.lexicon.words[:2] == ("</s>", "<unk>")
    assert run.lexicon.words[2:] == (
        "zèbre",
        "le",
        "dort",
        ".",
        "les",
        "zébus",
        "chien",
        "voit",
        "ours",
    )
    assert run.lexicon.letters == trained.lexicon.letters
    assert run.lexicon.counts[run.lexicon.ids["le"]] == 3
    corpus = run.read("test")
    text, scores = run.score_corpus(corpus)
    figures = scored_texts.passport_of(ScoredText(run, "test", corpus, text, scores))
    assert figures.out_of_vocabulary == 0
    assert figures.figures.unseen.tokens == 2
    assert figures.figures.unseen.rate == 2 / 12
    unseen = np.isin(text.words, [run.lexicon.ids["zèbre"], run.lexicon.ids["zébus"]])
    mean = -scores.log_prob[unseen].mean()
    np.testing.assert_allclose(figures.figures.unseen.log_perplexity, mean, rtol=1e-5)
    before = trained.score_corpus(trained.read("test"))
    trained_figures = scored_texts.passport_of(ScoredText(trained, "test", corpus, *before))
    assert trained_figures.out_of_vocabulary == 2
    assert trained_figures.out_of_vocabulary_rate == 2 / 10
    assert (trained_figures.types, trained_figures.out_of_vocabulary_types) == (8, 2)
    assert "2 outside the lexicon (20.00% of words, 25.00% of types)" in scored_texts.describe(
        trained_figures
    )
    assert trained_figures.figures.unseen.tokens == 0
    assert trained_figures.lexicon.words != figures.lexicon.words
    assert passport.file_of(run, figures) != passport.file_of(trained, trained_figures)
    if trained_figures.notes:  # "dorment" has more than five letters, and is not in the file
        assert trained_figures.notes["words cut by the head"] == 1
        assert figures.notes["words cut by the head"] == 0


@pytest.mark.slow
@pytest.mark.parametrize("open_workdir", ["lstm"], indirect=True)
def test_probabilities_of_the_words_in_the_text_do_not_depend_on_the_rest(open_workdir, words_file):
    """Over all spellings; over a lexicon, all change by one number a position."""
    trained = Run.load(open_workdir)
    run = NewLexicon(str(words_file)).apply(trained)
    corpus = dataclasses.replace(run.read("test"), sentences=[["le", "chien", "voit"]])
    trained_log_prob, file_log_prob = (r.score_corpus(corpus)[1].log_prob for r in (trained, run))
    np.testing.assert_allclose(trained_log_prob, file_log_prob, rtol=1e-4)


@pytest.mark.slow
def test_the_command_keeps_both_results(open_workdir, words_file, monkeypatch, capsys):
    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["evaluate.py", str(open_workdir), *arguments])
        return program.run(evaluate.main), *capsys.readouterr()

    code, output, _ = call("--split", "test", "--lexicon", str(words_file))
    assert code == 0
    assert "unseen in training: 2 tokens" in output
    spells = "CharLSTM" in Run.load(open_workdir).experiment.model.head.__repr__()
    code, output, errors = call("--split", "test", "--renormalise")
    names = sorted(path.name for path in (open_workdir / "results").glob("*.json"))
    if not spells:
        assert code == 2 and "leave out --renormalise" in errors
        assert len(names) == 1
        return
    assert code == 0 and "over all spellings" in output
    assert [name for name in names if "renormalised" in name] == [
        "test.sentences.renormalised.json"
    ]
    record = json.loads((open_workdir / "results" / "test.sentences.renormalised.json").read_text())
    assert "words of the lexicon" in record["normalised_over"]
    # Part of the mass is on spellings that are no words.
    figures = record["figures"]
    assert figures["log_perplexity"] < figures["log_perplexity_over_all_spellings"]
    plain = Run.load(open_workdir)
    _, scores = plain.score_corpus(plain.read("test"))
    np.testing.assert_allclose(
        figures["log_perplexity_over_all_spellings"], scores.log_perplexity, rtol=1e-5
    )


def test_text_is_spelled_by_the_command(open_workdir, monkeypatch, capsys):
    arguments = [str(open_workdir), "--spell", "--count", "3", "--prompt", "le ours"]
    monkeypatch.setattr(sys, "argv", ["zoo", "generate", *arguments])
    spells = isinstance(Run.load(open_workdir).experiment.model.head, CharLSTM)
    assert program.run(commands.main) == (0 if spells else 2)
    output, errors = capsys.readouterr()
    assert [line[:7] for line in output.splitlines()] == ["le ours"] * (3 * spells)
    assert ("leave --spell out" in errors) != spells


@pytest.mark.slow
@pytest.mark.parametrize("tied", [False, True])
def test_the_unknown_word_of_a_word_head_stands_for_new_words(tied, tmp_path, monkeypatch, capsys):
    workdir = trained_in(tmp_path, Lookup(size=7), Softmax(tied=tied), minimum_count=2)
    trained = Run.load(workdir)
    new_words = ("zèbre", "zébus", "dorment")
    file = tmp_path / "all.txt"
    file.write_text("\n".join((*new_words, *trained.lexicon.words)), encoding="utf-8")

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["evaluate.py", str(workdir), *arguments])
        return program.run(evaluate.main), *capsys.readouterr()

    code, output, _ = call("--split", "test", "--lexicon", str(file), "--spread-unknown")
    assert code == 0
    assert f"normalised over the {len(trained.lexicon) + 3} words of the lexicon" in output
    (path,) = (workdir / "results").glob("test.sentences.lexicon-*-spread.json")
    record = json.loads(path.read_text())
    assert record["notes"] == {"words that share the unknown word's probability": 4}
    # Words that the run does not know, in the file or not, have a quarter of <unk>'s each.
    text, scores = trained.score_corpus(trained.read("test"))
    unknown = ~text.known
    expected = (-scores.log_prob.sum() + unknown.sum() * np.log(4)) / scores.tokens
    np.testing.assert_allclose(record["figures"]["log_perplexity"], expected, rtol=1e-5)
    is_new = [word in new_words for sentence in trained.read("test").sentences for word in sentence]
    assert record["figures"]["unseen"]["tokens"] == sum(is_new) == 2
    # One was in the training text, once, and is <unk> to the run all the same.
    spread = NewLexicon(str(file), spread=True).apply(Run.load(workdir))
    np.testing.assert_array_equal(spread.lexicon.occurrences(new_words), [0, 0, 1])

    # Or by their letters: as many nats in all for the class, each word's by its spelling.
    code, _, _ = call("--split", "test", "--lexicon", str(file), "--spread-letters", "3")
    (path,) = (workdir / "results").glob("test.sentences.lexicon-*-spread-letters-3.json")
    by_letters = json.loads(path.read_text())
    (change,) = by_letters["changes"]
    assert (code, change["change"], change["spread"], change["letters"]) == (0, "lexicon", True, 3)
    assert change["file"] == str(file) and record["changes"][0]["letters"] == 0
    assert by_letters["normalised_over"] == record["normalised_over"]
    assert by_letters["figures"]["log_perplexity"] != record["figures"]["log_perplexity"]
    check_sums(NewLexicon(str(file), spread=True, letters=3).apply(Run.load(workdir)))

    code, _, errors = call("--split", "test", "--lexicon", str(file), "--spread-features")
    assert code == 2 and "this lexicon has none" in errors
    code, _, errors = call("--split", "test", "--spread-unknown")
    assert code == 2 and "give --add-words FILE or --lexicon FILE" in errors
    file.write_text("zèbre\nle\n", encoding="utf-8")
    code, _, errors = call("--split", "test", "--lexicon", str(file), "--spread-unknown")
    assert code == 2 and "are missing, such as" in errors


def check_sums(run):
    """The probabilities of all words sum to 1, whatever the hidden states."""
    model, hidden = run.experiment.language_model, np.random.default_rng(3).normal(size=(5, 7))
    arrays = model.head_params(run.params), run.tables["head"], hidden.astype(np.float32)
    np.testing.assert_allclose(np.exp(model.head.log_probs(*arrays)).sum(-1), 1, rtol=1e-5)


@pytest.mark.slow
def test_new_words_compete_by_features_for_the_probability_of_the_unknown_word(
    tmp_path, monkeypatch, capsys
):
    features = {
        **FEATURES,
        "features": (priors.TopWords(count=3), priors.Affixes((), (1,), minimum_words=1)),
    }
    workdir = trained_in(tmp_path, Features(size=3), LogLinear(), minimum_count=2, **features)
    file = tmp_path / "new.txt"
    file.write_text("zèbre\nzébus\ndort\nles\n", encoding="utf-8")

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["evaluate.py", str(workdir), "--split=test", *arguments])
        return program.run(evaluate.main), *capsys.readouterr()

    losses = {}
    for way in ("unknown", "features", "letters=2"):
        code, output, _ = call("--add-words", str(file), f"--spread-{way}")
        assert code == 0 and "the unknown word's probability spread over new words" in output
    for path in (workdir / "results").glob("*.json"):
        record = json.loads(path.read_text())
        losses[path.stem.partition("spread")[2]] = record["figures"]["log_perplexity"]
    assert losses.keys() == {"", "-features", "-letters-2"} and len({*losses.values()}) == 3
    # New words are read as <unk>: the states are the trained model's, whatever their features are.
    trained = Run.load(workdir)
    text, scores = trained.score_corpus(trained.read("test"))
    shares = np.log(1 + len({"zèbre", "zébus", "dort", "les"} - {*trained.lexicon.words}))
    expected = (-scores.log_prob.sum() + (~text.known).sum() * shares) / scores.tokens
    np.testing.assert_allclose(losses[""], expected, rtol=1e-5)
    for options in ({}, {"by_features": True}, {"letters": 2}):
        run = NewLexicon(str(file), adds=True, spread=True, **options).apply(Run.load(workdir))
        check_sums(run)
        # The words keep the probability that <unk> had, whatever their shares of it are.
        log_p = run.experiment.head.log_probs(
            run.params["head"], run.tables["head"], np.ones((1, 7), np.float32)
        )
        ids = [run.lexicon.ids[word] for word in ("<unk>", "zèbre", "zébus", "dort", "les")]
        whole = trained.experiment.head.log_probs(
            trained.params["head"], trained.tables["head"], np.ones((1, 7), np.float32)
        )
        mass = np.exp(whole)[0, trained.lexicon.unknown_id]
        np.testing.assert_allclose(np.exp(log_p)[0, ids].sum(), mass, rtol=1e-5)


@pytest.mark.slow
def test_words_of_a_run_that_knows_all_of_its_text_do_not_compete(tmp_path):
    workdir = trained_in(tmp_path, Lookup(size=3), Softmax())
    file = tmp_path / "new.txt"
    file.write_text("zèbre\n", encoding="utf-8")
    with pytest.raises(UserError, match="knows every word of its training text"):
        NewLexicon(str(file), adds=True, spread=True, letters=2).apply(Run.load(workdir))


@pytest.mark.slow
def test_noise_that_cannot_draw_the_new_words_is_not_needed_to_judge_them(tmp_path, words_file):
    head = CNNSoftmax(
        Convolution(SPELLING, letter_size=3, widths=(2,)),
        sampled=NCE(noise=UnigramNoise(smoothing=0.0), samples=3),
    )
    run = Run.load(trained_in(tmp_path, LETTERS, head, minimum_count=2))
    wider = NewLexicon(str(words_file)).apply(run)
    assert not wider.lexicon.counts.all()
    _, scores = wider.score_corpus(wider.read("test"))
    assert np.isfinite(scores.log_prob).all()
