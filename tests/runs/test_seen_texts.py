"""A text is known again by its content, however it is cut, ordered, cased or named."""

import hashlib
import json

import numpy as np
import pytest

from zoo.errors import UserError
from zoo.evaluation import leakage
from zoo.runs import seen_texts
from zoo.runs.seen_texts import SeenTexts, Texts

TEXT = [
    ["Les", "chats", "dorment", "toujours", "devant", "la", "porte", "verte", "."],  # 42 letters
    ["le", "chien", "dort", "."],
    [],
    [
        "il",
        "est",
        "interdit",
        "de",
        "marcher",
        "sur",
        "la",
        "pelouse",
        "du",
        "jardin",
    ],  # 42 letters
]


def hash_by_hand(letters):
    return int.from_bytes(hashlib.blake2b(letters.encode(), digest_size=8).digest(), "little")


def test_sentences_are_kept_as_hashes_of_their_letters_each_once():
    assert seen_texts.letters(["E\u0301TE\u0301 ", "ß"]) == "étéss"
    found = Texts.of("a.txt", [*TEXT, ["Le", "chien", "DORT", "."]])
    expected = ["leschatsdormenttoujoursdevantlaporteverte.", "lechiendort."]
    expected.append("ilestinterditdemarchersurlapelousedujardin")
    assert found.hashes.tolist() == sorted(map(hash_by_hand, expected))
    assert found.hashes.dtype == np.uint64
    (about,) = found.about
    assert about["sentences"] == 5 and about["tokens"] == 9 + 4 + 0 + 10 + 4
    assert about["text"] == "a.txt" and about["by"] == "this run"


def test_the_digest_of_a_text_is_that_of_its_words_and_sentences():
    expected = hashlib.sha256(json.dumps(TEXT, ensure_ascii=False).encode()).hexdigest()
    assert seen_texts.digest_of(TEXT) == expected
    assert seen_texts.digest_of(TEXT[::-1]) != expected


def counts(sentences, of_sentences, tokens, of_tokens):
    names = ("sentences", "of_sentences", "tokens", "of_tokens")
    return dict(zip(names, (sentences, of_sentences, tokens, of_tokens), strict=True))


def seen(*trained, selected=()):
    return SeenTexts(Texts.of("train", [*trained]), Texts.of("validation", [*selected]))


def test_overlap_is_found_in_any_order_case_and_cut():
    shuffled = [[*" ".join(TEXT[3]).upper()], ["un", "autre", "."], TEXT[0]]
    found = leakage.of_text(TEXT, seen(*shuffled, selected=TEXT[1:2]))
    assert found == {
        "letters": 30,
        "trained_on": {"all": counts(2, 3, 19, 23), "long": counts(2, 2, 19, 19)},
        "selected_on": {"all": counts(1, 3, 4, 23), "long": counts(0, 2, 0, 19)},
    }
    # Characters as words, a line break at the end, found among words.
    characters = [[*"le chien dort .\n"], [*"\n"], [*"un chat .\n"]]
    assert leakage.of_text(characters, seen(*TEXT))["trained_on"]["all"] == counts(1, 2, 16, 26)


def test_texts_of_other_runs_come_along_by_their_way(tmp_path):
    first = seen(TEXT[0], selected=TEXT[1:2]).without_record(["the background Arpa x.arpa"])
    second = seen(TEXT[1], selected=TEXT[3:]).joined(first, "init_from runs/a")
    third = seen(TEXT[3]).joined(second, "the background Trained runs/b")
    assert [text["by"] for text in third.trained_on.about] == [
        "this run",
        "the background Trained runs/b",
        "the background Trained runs/b, init_from runs/a",
    ]
    assert third.not_known == (
        "the background Trained runs/b, init_from runs/a, the background Arpa x.arpa",
    )
    third.save(tmp_path / "texts.npz")
    loaded = SeenTexts.load(tmp_path / "texts.npz")
    for role in seen_texts.ROLES:
        one, other = getattr(third, role), getattr(loaded, role)
        np.testing.assert_array_equal(one.hashes, other.hashes)
        assert one.about == other.about
    assert len(loaded.trained_on.hashes) == 3
    assert (loaded.not_known, loaded.data, loaded.made_with) == (third.not_known, "", {})


def test_a_damaged_record_is_named(tmp_path):
    path = tmp_path / "texts.npz"
    seen(*TEXT).save(path)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(UserError, match=r"texts\.npz is not a record of seen texts"):
        SeenTexts.load(path)


@pytest.mark.parametrize(
    ("all_found", "long_found", "expected"),
    [(672, 0, False), (144, 128, False), (249, 50, False), (251, 0, True), (51, 51, True)],
)
def test_what_recurs_by_nature_is_not_seen(all_found, long_found, expected):
    """Of 1,000 tokens, all in long sentences too; 672 and so on are in ten thousandths there."""
    scale = 10 if all_found in (672, 144) else 1
    found = {
        "all": counts(1, 9, all_found, 1000 * scale),
        "long": counts(1, 9, long_found, 1000 * scale),
    }
    nothing = {"all": counts(0, 9, 0, 1000), "long": counts(0, 9, 0, 1000)}
    trained = {"split": "test", "overlap": {"trained_on": found, "selected_on": nothing}}
    assert (leakage.reason(trained) is not None) == expected
    chosen = {"split": "data:x", "overlap": {"trained_on": nothing, "selected_on": found}}
    assert (leakage.reason(chosen) is not None) == expected
    for split in ("validation", "czech.validation"):
        assert leakage.reason({**chosen, "split": split}) is None
    assert (leakage.reason({**trained, "split": "validation"}) is not None) == expected
