"""Bars of long computations."""

import io
import sys
import time

import pytest

from zoo.lab.evaluation import perplexity


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("stream", [Terminal, io.StringIO])
def test_a_bar_is_shown_on_a_terminal_where_a_command_asks(stream, monkeypatch):
    monkeypatch.setattr(sys, "stderr", stream())
    monkeypatch.setattr(perplexity, "DELAY", 0)
    with perplexity.bar(10, "tokens") as advance:
        advance(5)
    assert sys.stderr.getvalue() == ""
    with perplexity.on_terminal(), perplexity.bar(10, "tokens") as advance:
        time.sleep(0.11)  # the bar is drawn ten times a second
        advance(10)
    assert ("10/10" in sys.stderr.getvalue()) == (stream is Terminal)


def test_scores_of_a_text_advance_a_bar_to_its_end(run, monkeypatch):
    done = []

    class Bar:
        def __init__(self, total, **_):
            done.append([total])

        def __enter__(self):
            return self

        def __exit__(self, *error):
            pass

        def update(self, count):
            done[-1].append(count)

    monkeypatch.setattr("tqdm.tqdm", Bar)
    with perplexity.on_terminal():
        text, _ = run.score_corpus(run.read("test"))
    ((total, *parts),) = done
    assert total == sum(parts) == len(text.words)
