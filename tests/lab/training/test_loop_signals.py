"""Signals that ask a run to end."""

import os
import signal

import pytest

from zoo.lab.training.loop import handle_signals

pytestmark = pytest.mark.usefixtures("signals")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_is_handed_on(number):
    before = signal.getsignal(number)
    received = []
    with handle_signals(lambda number, frame: received.append(number)):
        os.kill(os.getpid(), number)
    assert received == [number]
    assert signal.getsignal(number) is before


def test_a_signal_that_is_ignored_stays_so():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as under nohup
    try:
        with handle_signals(lambda number, frame: pytest.fail("it is handed on")):
            os.kill(os.getpid(), signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_ctrl_c_that_is_ignored_stays_so_after_another_signal():
    """As in a background job of a shell; else the second Ctrl-C would end at once."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        received = []
        with handle_signals(lambda number, frame: received.append(number)):
            os.kill(os.getpid(), signal.SIGTERM)
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        assert received == [signal.SIGTERM]
    finally:
        signal.signal(signal.SIGINT, before)
