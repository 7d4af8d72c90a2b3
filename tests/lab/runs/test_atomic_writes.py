"""Files are complete or absent, and on the disk before they have their names."""

import os

from zoo.lab.runs import atomic_writes, location


def test_a_new_file_of_a_bucket_is_written_once(tmp_path, monkeypatch):
    monkeypatch.setattr(location, "is_bucket", lambda path: True)
    path, place_new = tmp_path / "file", atomic_writes.place_new
    assert atomic_writes.write_whole(path, lambda file: file.write_text("one"), place_new)
    assert not atomic_writes.write_whole(path, lambda file: file.write_text("two"), place_new)
    assert path.read_text() == "one"


def test_a_file_is_on_the_disk_before_it_has_its_name(tmp_path, monkeypatch):
    """Otherwise a power loss may leave an empty file in the place of a whole one."""
    path, flushed = tmp_path / "table", []
    path.write_text("old")

    def fsync(descriptor):
        flushed.append((os.stat(descriptor).st_size, path.read_text()))

    monkeypatch.setattr(os, "fsync", fsync)
    atomic_writes.write_text(path, "newer")
    assert flushed[0] == (5, "old")
    assert path.read_text() == "newer"
