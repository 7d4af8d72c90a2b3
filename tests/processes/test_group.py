"""What processes have in common, and what process 0 gives to the others."""

import dataclasses
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from zoo.errors import UserError
from zoo.processes import group
from zoo.processes.group import ALONE, Processes


class Said:
    """Links to processes that say what they were told to."""

    def __init__(self, *others):
        self.others = others

    def exchange(self, text):
        return [text, *self.others]


def hashes_of(**texts):
    """What another process says of its texts."""

    class Heard:
        def exchange(self, text):
            self.text = text
            return [text]

    heard = Heard()
    Processes(1, 2, "h:1", heard).check_alike(**texts)
    return heard.text


def test_processes_of_one_kind_go_on():
    same = hashes_of(recipe="a", text="b")
    Processes(0, 3, "h:1", Said(same, same)).check_alike(recipe="a", text="b")
    ALONE.check_alike(recipe="a")


@pytest.mark.parametrize("name", ["recipe", "version_of_the_code", "lexicon"])
def test_a_process_of_another_kind_is_named_by_its_hash(name):
    texts = {"recipe": "a", "version_of_the_code": "b", "lexicon": "c"}
    same, other = hashes_of(**texts), hashes_of(**{**texts, name: "x"})
    with pytest.raises(UserError) as caught:
        Processes(0, 3, "h:1", Said(same, other)).check_alike(**texts)
    assert f"process 2 has another {name.replace('_', ' ')} than process 0" in str(caught.value)
    assert json.loads(other)[name][:12] in str(caught.value)


def test_the_code_has_one_hash_in_all_processes(tmp_path, monkeypatch):
    one = group.code_digest()
    assert one == group.code_digest() and len(one) == 64
    (tmp_path / "a.py").write_text("1")
    monkeypatch.setattr(group.version, "__file__", str(tmp_path / "version.py"))
    other = group.code_digest()
    (tmp_path / "a.py").write_text("2")
    assert len({one, other, group.code_digest()}) == 3


def test_others_get_the_bits_of_process_0(monkeypatch):
    """Signs of zeros, NaNs and odd sizes too."""
    monkeypatch.setattr(group, "_CHUNK", 4)
    leaves = [
        np.array([[-0.0, np.nan, 1e-45], [np.inf, 2.0, -3.0]], np.float32),
        np.array(7, np.int32),
        np.array([True, False, True]),
        np.zeros((0, 5), np.float32),
        np.asarray(jnp.arange(5, dtype=jnp.bfloat16)),
        np.arange(9, dtype=np.uint8).reshape(3, 3),
    ]
    shapes = jax.eval_shape(lambda: jax.tree.map(jnp.asarray, leaves))
    sent = []

    def send(numbers):
        sent.append(numbers.copy())
        return numbers

    monkeypatch.setattr(group.multihost_utils, "broadcast_one_to_all", send)
    first = Processes(0, 2, "h:1", Said(""))
    given = [*first.from_first(leaves, shapes)]
    # The other one: what it would send itself is not looked at.
    stream = iter(sent)
    monkeypatch.setattr(group.multihost_utils, "broadcast_one_to_all", lambda numbers: next(stream))
    received = dataclasses.replace(first, index=1).from_first([], shapes)
    for leaf, one, other in zip(leaves, given, received, strict=True):
        assert (leaf.dtype, leaf.shape) == (one.dtype, one.shape) == (other.dtype, other.shape)
        assert leaf.tobytes() == one.tobytes() == other.tobytes()
    for given, leaf in zip(ALONE.from_first(leaves, shapes), leaves, strict=True):
        assert given is leaf


def test_processes_that_find_other_numbers_of_devices_leave(monkeypatch):
    """Before their first collective, of which JAX expects as many of each."""
    monkeypatch.setattr(jax, "local_device_count", lambda: 2)
    Processes(0, 2, "h:1", Said("2"))._check_devices()
    with pytest.raises(
        UserError, match=r"process 2 finds 1 device\(s\) and process 0 finds 2: let"
    ):
        Processes(0, 3, "h:1", Said("2", "1"))._check_devices()


def test_process_0_says_what_all_have():
    assert ALONE.share({"a": 1}) == {"a": 1}
    assert Processes(0, 2, "h:1", Said("")).share([1.5, float("inf")]) == [1.5, float("inf")]

    class Others:
        def exchange(self, text):
            assert text == ""
            return ["[0.1, null]", text]

    assert Processes(1, 2, "h:1", Others()).share() == [0.1, None]
