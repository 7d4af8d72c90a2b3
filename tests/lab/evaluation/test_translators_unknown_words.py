"""Unknown words put into translations: by marks, by attention in each order, by the command."""

import dataclasses
import io
import sys
from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
import pytest

import zoo
from tests.lab.training import small
from tests.lab.training.test_tasks_translation import MODEL, experiment
from zoo.alignment import Copyable, PositionalUnknown
from zoo.attention import Luong
from zoo.data import Pairs, Vocabulary
from zoo.decoding.batched_search import Hypothesis
from zoo.errors import UserError
from zoo.lab.commands import command_table
from zoo.lab.evaluation.run import Run
from zoo.lab.evaluation.translators import Restoring, Translator
from zoo.lexicon import Lexicon

SOURCES, TARGETS = ("<unk>", "a", "b", "c"), ["</s>", "<unk>", "A", "B", "<unkpos_1>", "<unk_1>"]


@dataclasses.dataclass(frozen=True)
class Attentive:
    """A model that attends to the source word of the number of the target word before."""

    order: str
    attention: str | None = "some"

    def attention_weights(self, params, tables, source, lengths, words):
        is_real = jnp.arange(source.shape[1])[None, :] >= source.shape[1] - lengths[:, None]
        return (source[:, None] == words[:, :, None]) * 0.5 + is_real[:, None] * 0.1


def translator_of(model, unknowns=None):
    run = SimpleNamespace(
        path="runs/a",
        params={},
        tables={},
        experiment=SimpleNamespace(
            model=model,
            data=SimpleNamespace(unknowns=unknowns),
            source_side_vocabulary=Vocabulary(boundary="none"),
        ),
        lexicon=SimpleNamespace(words=TARGETS, unknown="<unk>"),
        source_lexicons=[Lexicon(SOURCES, np.ones(len(SOURCES), np.int64), unknown="<unk>")],
    )
    turned = model.order == "target_reversed"

    def words_and_tokens(hypothesis):
        tokens = [TARGETS[word] for word in hypothesis.words]
        return [(word, [word]) for word in (tokens[::-1] if turned else tokens)]

    def words(hypothesis):
        return [word for word, _ in words_and_tokens(hypothesis)]

    methods = {"words": words, "words_and_tokens": words_and_tokens}
    return SimpleNamespace(runs=(run,), boundary=0, **methods)


def hypothesis(words):
    return Hypothesis([TARGETS.index(word) for word in words], [], 0.0, 0.0, True)


@pytest.mark.parametrize("order", ["forward", "source_reversed", "target_reversed"])
def test_attention_says_which_word_is_meant_in_every_order(order):
    restoring = Restoring(translator_of(Attentive(order)), {"b": "BEE"})
    source = ["zut", "b", "a", "c"]
    output = ["A", "<unk>", "B", "<unk>"]  # in the order in which the decoder says them
    # After A, number 2, it attends to source word 2, b; after B to c, which is in no dictionary.
    expected = ["A", "BEE", "B", "c"]
    restored = restoring.words(hypothesis(output), source)
    assert (restored[::-1] if order == "target_reversed" else restored) == expected
    assert restoring.annotate([source]) == [source]
    # At first it attends to what is no word of the lexicon.
    assert restoring.words(hypothesis(["<unk>"]), source) == ["zut"]
    assert restoring.words(hypothesis(["A", "B"]), source)[0] in "AB"


def test_marks_say_which_word_is_meant():
    source = ["zut", "b", "a"]
    restoring = Restoring(
        translator_of(Attentive("forward", None), PositionalUnknown()), {"b": "X"}
    )
    assert restoring.annotate([source]) == [["<unk>", "b", "a"]]
    assert restoring.words(hypothesis(["A", "<unkpos_1>", "<unkpos_1>"]), source) == [
        "A",
        "zut",
        "X",
    ]
    restoring = Restoring(translator_of(Attentive("forward", None), Copyable()), {})
    assert restoring.annotate([source]) == [["<unk_1>", "b", "a"]]
    assert restoring.words(hypothesis(["A", "<unk_1>"]), source) == ["A", "zut"]
    with pytest.raises(UserError, match=r"runs/a does not tell which source word an unknown word"):
        Restoring(translator_of(Attentive("forward", None)), {})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("strategy", "attention"), [(PositionalUnknown(reach=3), Luong()), (Copyable(numbers=3), None)]
)
def test_a_run_is_trained_with_marks_and_translates_without(
    strategy, attention, tmp_path, monkeypatch, capsys
):
    source = ["le chat dort", "le chien dort", "un chat dort", "le lynx dort", "un ours dort"]
    target = [
        "the cat sleeps",
        "the dog sleeps",
        "a cat sleeps",
        "the lynx sleeps",
        "a bear sleeps",
    ]
    for name, lines in (("x", source * 8), ("y", target * 8), ("a", ["0-0 1-1 2-2"] * 40)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    paths = (str(tmp_path / "x"), str(tmp_path / "y"))
    data = Pairs(
        *(paths, paths, (paths,)),
        unknowns=strategy,
        known=(5, 5),
        alignments=(str(tmp_path / "a"),) * 2,
    )
    model = dataclasses.replace(MODEL, attention=attention)
    recipe = dataclasses.replace(experiment(model, epochs=20), data=data)
    small.run_in(tmp_path / "run", recipe)
    run = Run.load(tmp_path / "run")
    assert run.lexicon.words.count("lynx") == 0 and "<unk>" in run.source_lexicons[0].ids
    assert Translator((run,)).pairs("validation").sentences[3] == ["the", "lynx", "sleeps"]
    (tmp_path / "d").write_text("ours\tbear\n")

    def call(*words, text):
        monkeypatch.setattr(sys, "stdin", io.StringIO(text))
        capsys.readouterr()
        command_table.main(["translate", str(tmp_path / "run"), "--beam", "2", *map(str, words)])
        return capsys.readouterr().out.splitlines()

    translations = call("--dictionary", tmp_path / "d", text="un ours dort\nle zèbre dort\n")
    assert (
        len(translations) == 2
        and "bear" in translations[0].split()
        and "zèbre" in translations[1].split()
    )
    assert not any(mark in line.split() for mark in strategy.marks() for line in translations)
    python = zoo.load_translator(tmp_path / "run")
    lines = ["un ours dort", "", "le zèbre dort"]
    assert python.translate(lines, beam=2) == call(text="\n".join(lines) + "\n")
    (best,) = call("--nbest", 1, text="un ours dort\n")[:1]
    assert not any(mark in best.split() for mark in strategy.marks())
