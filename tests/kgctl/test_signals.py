"""A second Ctrl-C at any moment of the end of a program changes nothing."""

from __future__ import annotations

import subprocess
import sys

TWO_SIGNALS_AT_ONCE = """
import os, signal
from kgctl.signals import ignore

def first(*_):
    ignore(signal.SIGHUP, signal.SIGINT)

both = {signal.SIGHUP, signal.SIGINT}
for number in both:
    signal.signal(number, first)
signal.pthread_sigmask(signal.SIG_BLOCK, both)
for number in both:
    os.kill(os.getpid(), number)
signal.pthread_sigmask(signal.SIG_UNBLOCK, both)
print("ended")
"""


def test_signals_that_arrive_together_with_the_one_that_is_handled_are_ignored():
    done = subprocess.run([sys.executable, "-c", TWO_SIGNALS_AT_ONCE], capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stdout, done.stderr) == (0, "ended\n", "")
