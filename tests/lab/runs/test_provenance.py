"""The revision that passports name."""

import subprocess

from zoo import version
from zoo.lab.runs import provenance


def test_a_revision_is_dirty_if_its_code_was_changed_but_not_by_outputs(tmp_path, monkeypatch):
    def git(*arguments):
        identity = "-c", "user.name=nobody", "-c", "user.email=nobody@example.org"
        subprocess.run(["git", "-C", str(tmp_path), *identity, *arguments], check=True)

    def revision():
        provenance.revision.cache_clear()
        return provenance.revision()

    module = tmp_path / "zoo" / "version.py"
    module.parent.mkdir()
    module.write_text("")
    monkeypatch.setattr(version, "__file__", str(module))
    git("init", "--quiet")
    git("add", ".")
    git("commit", "--quiet", "--message", "First")
    clean = revision()
    assert len(clean) == 40
    (tmp_path / "agreement.png").write_text("a picture")
    assert revision() == clean
    (tmp_path / "my_module.py").write_text("")
    assert revision() == f"{clean}-dirty"
    (tmp_path / "my_module.py").unlink()
    module.write_text("changed = True")
    assert revision() == f"{clean}-dirty"
    provenance.revision.cache_clear()
