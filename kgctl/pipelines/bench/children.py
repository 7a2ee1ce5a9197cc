"""Child processes of the bench. They end with the command, however it ends."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

from kgctl.client.net.errors import KgctlError
from kgctl.exit_codes import INTERRUPTED

_PYTHON = [sys.executable, "-P", "-m"]
# Time to delete temporary files and to stop Spark.
_END_TIMEOUT_S = 5.0


class BenchFailed(KgctlError):
    """An engine failed, or its result differs from the others."""


def output_of(module: str, *arguments: str) -> str:
    """What the module prints; it must call `end_with_parent`. Raises BenchFailed with the last line of its errors."""
    read_end, write_end = os.pipe()
    with os.fdopen(read_end) as stdin, os.fdopen(write_end, "wb") as held_open:
        # In a new session: Ctrl-C reaches only the command, which closes the pipe.
        child = subprocess.Popen(
            [*_PYTHON, module, *arguments],
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        try:
            printed, errors = child.communicate()
        finally:
            held_open.close()
            # Also if the command was interrupted: the child still uses the folder that the caller deletes.
            child.wait()
    if child.returncode:
        lines = errors.decode("utf-8", "replace").strip().splitlines()
        raise BenchFailed(f"{module} {' '.join(arguments)}: {lines[-1] if lines else f'exit code {child.returncode}'}")
    return printed.decode()


@contextlib.contextmanager
def stopped_by_sigterm() -> Iterator[None]:
    """SIGTERM raises KeyboardInterrupt, as Ctrl-C does; by default it would leave temporary files behind."""
    try:
        before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    except ValueError:
        # Not in the main thread.
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def end_with_parent() -> None:
    """From now on, raise KeyboardInterrupt in the main thread when stdin closes, and end the process soon after."""
    # A shell starts a command with `&` so that it ignores Ctrl-C, and so do its children.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Thread(target=_end_with_stdin, daemon=True).start()


def _end_with_stdin() -> None:
    # Not sys.stdin: a thread that waits in it would abort an interpreter that ends.
    os.read(0, 1)
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(_END_TIMEOUT_S)
    os._exit(INTERRUPTED)
