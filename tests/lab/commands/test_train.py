"""zoo train lists configs, and shows recipes with their settings."""

import pytest

import configs
from zoo import __main__ as commands
from zoo.errors import UserError


def test_configs_are_listed_by_family_with_size_and_time(capsys):
    commands.main(["train", "--list"])
    lines = capsys.readouterr().out.splitlines()
    rows = {line[2:].split()[0]: line for line in lines if line[:2] in ("* ", "  ")}
    assert {*rows} == {*configs.names()}
    starred = [name for name, row in rows.items() if row.startswith("*")]
    assert starred == [*[*rows][:5], "micro_translation"]  # the first, and one of translations
    # As the docstrings of the three tell.
    for name, cost in (("ptb_softmax", "22 min"), ("ptb_awd_lstm", "24M"), ("lm1b_big", "1.8B")):
        row = " ".join(rows[name].split(name)[1].split())
        assert row.startswith(f"{cost} {configs.summary(name)}")
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
