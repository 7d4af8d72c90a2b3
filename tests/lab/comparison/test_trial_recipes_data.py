"""Texts, pairs, treebanks and configs become the recipe that all heads share."""

import pytest

import configs
from zoo.errors import UserError
from zoo.heads import LogLinear
from zoo.lab.comparison import trial_recipes

TOKENS = "1\tthe\tthe\tDET\t_\t_\t_\t_\t_\t_\n2\tcat\tcat\tNOUN\t_\tNumber=Sing\t_\t_\t_\t_\n\n"


def test_a_config_is_found_by_its_name_or_file(tmp_path):
    assert trial_recipes.load_recipe(["micro_softmax"]) == (configs.load("micro_softmax"), ())
    treebank = trial_recipes.load_recipe(["ud_czech_pdt"])[0]
    assert treebank.data.train == "ud_czech_pdt/train.conllu"
    file = tmp_path / "mine.py"
    file.write_text("from configs.micro_softmax import get_config\n")
    assert trial_recipes.load_recipe([str(file)])[0] == configs.load("micro_softmax")
    with pytest.raises(UserError, match="the config 'micro_softmx' does not exist; the nearest"):
        trial_recipes.load_recipe(["micro_softmx"])


def test_a_treebank_is_a_file_or_a_folder(tmp_path):
    file = tmp_path / "bank.conllu"
    file.write_text(TOKENS * 45)
    recipe, notes = trial_recipes.load_recipe([str(file)])
    assert recipe.data.train == f"{file}[:37]" and recipe.data.validation == f"{file}[37:41]"
    assert recipe.data.tests == (f"{file}[41:]",)
    assert notes == (
        f"{file}: 45 sentences.",
        "Training on the first 37 sentences, validation on the next 4, test on the last 4.",
    )
    assert isinstance(recipe.model.head, LogLinear)
    assert trial_recipes.count_words(recipe).judged_tokens == 4 * 3
    (tmp_path / "train.conllu").write_text(TOKENS)
    folder_recipe, _ = trial_recipes.load_recipe([str(tmp_path)])
    assert folder_recipe.data.tests == (f"{tmp_path}/test.conllu",)
    file.write_text(TOKENS * 5)
    with pytest.raises(UserError, match="has 5 sentences: give at least 20"):
        trial_recipes.load_recipe([str(file)])
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
            trial_recipes.load_recipe(paths, **options)


def test_texts_and_pairs(tmp_path):
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("The cat sat there , and the dog sat here .\n" * 400)
    text, notes = trial_recipes.load_recipe([str(tmp_path / "a.txt")])
    assert type(text.data).__name__ == "RawText" and notes
    letters, _ = trial_recipes.load_recipe([str(tmp_path / "a.txt")], letters=True)
    assert type(letters.data).__name__ == "Characters"
    assert (
        trial_recipes.count_words(letters).are_letters
        and not trial_recipes.count_words(text).are_letters
    )
    pairs, _ = trial_recipes.load_recipe([str(tmp_path / "a.txt"), str(tmp_path / "b.txt")])
    assert type(pairs.data).__name__ == "RawPairs"
    with pytest.raises(UserError, match="3 texts are given: give one, or two for pairs"):
        trial_recipes.load_recipe(["a.txt", "b.txt", "c.txt"])
    with pytest.raises(UserError, match=r"nowhere\.txt"):
        trial_recipes.load_recipe([str(tmp_path / "nowhere.txt")])
