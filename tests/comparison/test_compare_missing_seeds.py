"""Seeds of a recipe of which only some were judged on a text."""

import json
import pathlib

from zoo.comparison import text_report

RECORD = pathlib.Path(__file__).parents[2] / "records" / "micro.jsonl"


def test_the_number_of_judged_seeds_stands_beside_their_mean(tmp_path):
    lines = [json.loads(line) for line in RECORD.read_text(encoding="utf-8").splitlines()]
    softmax = [line for line in lines if line["run"].startswith("micro_softmax")]
    tests = [name for name in softmax[0]["results"] if name.startswith("test")]
    assert tests and len(softmax) == 3
    for line in softmax[1:]:
        for name in tests:
            del line["results"][name]
    record = tmp_path / "record.jsonl"
    record.write_text("".join(json.dumps(line) + "\n" for line in softmax), encoding="utf-8")
    told = text_report.tables([str(record)])
    loss = softmax[0]["results"][tests[0]]["figures"]["log_perplexity"]
    assert f"{loss:.4f} (1 of 3 seeds)" in told
    assert "of 3 seeds)" not in text_report.tables([str(RECORD)])
