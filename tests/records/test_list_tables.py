"""Tables of re-ranked lists: seeds of a model."""

from records import list_tables


def test_seeds_of_a_model():
    runs = ["we_3_captions_0", "we_3_captions_12", "ce_3_captions_0", "none"]
    assert list_tables.group_seeds(runs) == {
        "we_3_captions": ["we_3_captions_0", "we_3_captions_12"],
        "ce_3_captions": ["ce_3_captions_0"],
        "none": ["none"],
    }
