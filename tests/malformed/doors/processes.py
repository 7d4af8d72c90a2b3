"""Options that do not say which process of a run this one is."""

from tests.malformed import readers


def _options(options, folder):
    readers.CALLS["train.py"](f"--config micro_softmax w {options}", folder)


CALLS = {"options of a process": _options}
