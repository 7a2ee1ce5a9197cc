"""A broker in a fork of this process: that saves the start of another interpreter, which is a tenth of a broker's start."""

from __future__ import annotations

import io
import os
import sys

# Without typing and collections: what runs before the fork delays the broker.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

DESCRIPTORS = "/proc/self/fd"
SIGKILL = 9


class ForkedProcess:
    """The child, with what `broker.local` uses of a `subprocess.Popen`."""

    stdin = None

    def __init__(self, pid: int, stderr: int) -> None:
        self.pid = pid
        self.stderr = io.FileIO(stderr)
        self.returncode: int | None = None

    def kill(self) -> None:
        if self.returncode is None:
            os.kill(self.pid, SIGKILL)

    def wait(self, timeout: float | None = None) -> int:
        """The exit code, negative for a signal. Raises subprocess.TimeoutExpired."""
        import time

        end = None if timeout is None else time.monotonic() + timeout
        while self.returncode is None:
            found, status = os.waitpid(self.pid, 0 if end is None else os.WNOHANG)
            if found:
                self.returncode = os.waitstatus_to_exitcode(status)
            elif end is not None and time.monotonic() > end:
                import subprocess

                raise subprocess.TimeoutExpired("broker", timeout or 0)
            else:
                time.sleep(0.01)
        return self.returncode


def can_fork() -> bool:
    """Whether a fork of this process is as good as a new one: on Linux, with standard streams and without threads."""
    threading = sys.modules.get("threading")
    if sys.platform != "linux" or (threading is not None and threading.active_count() > 1):
        return False
    try:
        for number in range(3):
            os.fstat(number)
        os.listdir(DESCRIPTORS)
    except OSError:
        return False
    return True


def fork_broker(arguments: Sequence[str]) -> ForkedProcess:
    """Start a broker with these arguments of `python -m broker`, in a new session and with a pipe as its stderr."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        _become_broker(arguments, writer)
    os.close(writer)
    return ForkedProcess(pid, reader)


def _become_broker(arguments: Sequence[str], stderr: int) -> NoReturn:
    code = 1
    try:
        os.setsid()
        null = os.open(os.devnull, os.O_RDWR)
        for number, descriptor in ((0, null), (1, null), (2, stderr)):
            os.dup2(descriptor, number)
        _close_others()
        _search_own_modules_first()
        from broker.__main__ import main

        code = main([*arguments])
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else code
    except BaseException:  # noqa: BLE001  nothing of the parent's program may continue here
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stderr.flush()
        os._exit(code)


def _close_others() -> None:
    """Close what this process has inherited, such as the lock file of a shell script."""
    for number in map(int, os.listdir(DESCRIPTORS)):
        if number > 2:
            try:
                os.close(number)
            except OSError:
                # The descriptor with which the directory was listed.
                continue


def _search_own_modules_first() -> None:
    """As with python -P: no module comes from the current directory."""
    if sys.path and not sys.flags.safe_path and not os.path.isfile(sys.path[0]):
        sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
