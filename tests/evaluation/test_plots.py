"""Pictures are written, whatever is missing or infinite."""

import json

import pytest

from zoo.evaluation import plots

SIGNATURE = b"\x89PNG"


@pytest.fixture
def file(tmp_path):
    return tmp_path / "pictures" / "picture.png"


def test_training_curves(tmp_path, file):
    lines = [
        {"step": 100, "training_loss": 3.0},
        {"step": 150, "validation_log_perplexity": 4.0, "epoch_training_loss": 5.0},
        {"step": 300, "validation_log_perplexity": 3.0, "epoch_training_loss": 3.5},
    ]
    path = tmp_path / "metrics.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines) + '{"step": 4')
    plots.training_curves({"a": path, "b": path}, file, limit=2.0)
    assert file.read_bytes().startswith(SIGNATURE)


def test_bands(file):
    rows = {
        "a": [{"band": "unseen", "log_perplexity": "inf"}, {"band": "1-9", "log_perplexity": 3.0}],
        "b": [{"band": "1-9", "log_perplexity": 2.0}, {"band": "10000+", "log_perplexity": 1.0}],
    }
    plots.bands(rows, file, limit={"1-9": 1.5})
    assert file.read_bytes().startswith(SIGNATURE)


def test_accuracy(file):
    plots.accuracy({"a": {"number": 0.5, "gender": 1.0}, "b": {"number": 0.25}}, file)
    assert file.read_bytes().startswith(SIGNATURE)
