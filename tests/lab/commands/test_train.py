"""zoo train lists configs, and shows recipes with their settings."""

import pytest

import configs
from zoo import __main__ as commands
from zoo.errors import UserError


def test_configs_are_listed_by_family(capsys):
    commands.main(["train", "--list"])
    lines = capsys.readouterr().out.splitlines()
    rows = {line[2:].split()[0]: line for line in lines if line[:2] in ("* ", "  ")}
    assert {*rows} == {*configs.names()}
    starred = [name for name, row in rows.items() if row.startswith("*")]
    assert starred == [*[*rows][:5], "micro_translation"]  # the first, and one of translations
    for name in ("ptb_softmax", "lm1b_big"):
        assert rows[name].split(name, 1)[1].strip() == configs.summary(name)
    families = [line.partition("/ ")[0] for line in lines if line[:1].islower()]
    assert families[:2] == ["micro", "own"] and sorted(families) == configs.FAMILIES


def test_fields_are_set_as_ml_collections_writes_them(capsys):
    words = ["train", "--show", "micro_softmax", "--config.training.batch=7", "--set"]
    commands.main([*words, "training.length=9", "--config.model.core.size=12"])
    printed = capsys.readouterr().out
    for setting in ("    batch = 7\n", "    length = 9\n", "      size = 12\n"):
        assert setting in printed
    with pytest.raises(UserError, match=r"^--set training\.batch: write it as field=value"):
        commands.main(["train", "--show", "micro_softmax", "--config.training.batch", "7"])
