"""Runs a command and ends it, with its descendants, when stdin closes, so that it does not outlive the tests.

python -m tests.kgctl.pipelines.cluster.tether COMMAND ARGUMENT...
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading

PATIENCE_S = 10.0


def main(command: list[str]) -> None:
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, process_group=0)
    threading.Thread(target=_end_with, args=(child,), daemon=True).start()
    # Ctrl-C is for the process that holds our stdin.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.stdin.buffer.read()
    child.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(PATIENCE_S)
    _kill_group(child)
    os._exit(0)


def _end_with(child: subprocess.Popen[bytes]) -> None:
    code = child.wait()
    _kill_group(child)
    os._exit(code if code >= 0 else 1)


def _kill_group(child: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)


if __name__ == "__main__":
    main(sys.argv[1:])
