"""Texts, pairs, treebanks and configs become a recipe."""

import pytest

import configs
from zoo.errors import UserError
from zoo.heads import LogLinear
from zoo.lab.own_text import choose
from zoo.lab.own_text.heads import count_words

TOKENS = "1\tthe\tthe\tDET\t_\t_\t_\t_\t_\t_\n2\tcat\tcat\tNOUN\t_\tNumber=Sing\t_\t_\t_\t_\n\n"


def test_a_config_is_found_by_its_name_or_file(tmp_path):
    assert choose(["micro_softmax"]).experiment() == configs.load("micro_softmax")
    treebank = choose(["ud_czech_pdt"]).experiment()
    assert treebank.data.train == "ud_czech_pdt/train.conllu"
    file = tmp_path / "mine.py"
    file.write_text("from configs.micro_softmax import get_config\n")
    assert choose([str(file)]).experiment() == configs.load("micro_softmax")
    with pytest.raises(UserError, match="the config 'micro_softmx' does not exist; the nearest"):
        choose(["micro_softmx"])


def test_a_treebank_is_a_file_or_a_folder(tmp_path):
    file = tmp_path / "bank.conllu"
    file.write_text(TOKENS * 45)
    bank = choose([str(file)])
    recipe = bank.experiment()
    assert recipe.data.train == f"{file}[:37]" and recipe.data.validation == f"{file}[37:41]"
    assert recipe.data.tests == (f"{file}[41:]",)
    assert bank.notes == (
        f"{file}: 45 sentences.",
        "Training on the first 37 sentences, validation on the next 4, test on the last 4.",
    )
    assert isinstance(recipe.model.head, LogLinear)
    assert count_words(recipe).judged_tokens == 4 * 3
    (tmp_path / "train.conllu").write_text(TOKENS)
    folder_recipe = choose([str(tmp_path)]).experiment()
    assert folder_recipe.data.tests == (f"{tmp_path}/test.conllu",)
    for paths, options, message in (
        ([str(file)], {"letters": True}, "--letters is for a text, and .* is a treebank"),
        ([str(tmp_path)], {"languages": ["fr"]}, "--language is for a text, and .* is a treebank"),
        (
            ["ptb_softmax"],
            {"letters": True},
            "--letters is for a text, and ptb_softmax is a config",
        ),
    ):
        with pytest.raises(UserError, match=message):
            choose(paths, **options)
    file.write_text(TOKENS * 5)
    with pytest.raises(UserError, match="has 5 sentences: give at least 20"):
        choose([str(file)])


def test_texts_and_pairs(tmp_path):
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("The cat sat there , and the dog sat here .\n" * 400)
    text = choose([str(tmp_path / "a.txt")]).experiment()
    assert type(text.data).__name__ == "RawText"
    letters = choose([str(tmp_path / "a.txt")], letters=True).experiment()
    assert type(letters.data).__name__ == "Characters"
    assert count_words(letters).are_letters and not count_words(text).are_letters
    pairs = choose([str(tmp_path / "a.txt"), str(tmp_path / "b.txt")]).experiment()
    assert type(pairs.data).__name__ == "RawPairs"
    with pytest.raises(UserError, match="3 texts are given: give one, or two for pairs"):
        choose(["a.txt", "b.txt", "c.txt"])
    with pytest.raises(UserError, match=r"nowhere\.txt"):
        choose([str(tmp_path / "nowhere.txt")])
