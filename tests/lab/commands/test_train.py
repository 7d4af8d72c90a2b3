"""zoo train lists configs, and shows recipes with their settings."""

import configs
from zoo import __main__ as commands


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
