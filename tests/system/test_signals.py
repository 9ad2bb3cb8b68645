"""SIGTERM as Ctrl-C, Ctrl-C not at all, and both as they were afterwards."""

import signal
import threading

import pytest

from droptop.system.signals import deaf, interruptible


def test_sigterm_raises_keyboard_interrupt_inside_and_not_after():
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt), interruptible():
        signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is before


def test_ctrl_c_is_ignored_inside_and_not_after():
    before = signal.getsignal(signal.SIGINT)
    with deaf():
        signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize("context", [deaf, interruptible])
def test_other_threads_change_no_handler(context):
    before, inside = [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)], []

    def run():
        with context():
            inside.extend(signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert inside == before
