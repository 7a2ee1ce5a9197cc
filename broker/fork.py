"""A broker in a fork of this process: that saves the start of another interpreter, which is a tenth of a broker's start."""

from __future__ import annotations

import io
import os
import signal
import sys

# Without typing and collections: what runs before the fork delays the broker.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

DESCRIPTORS = "/proc/self/fd"
INTERRUPT = (signal.SIGINT,)


class ForkedProcess:
    """The child, with what `broker.local` uses of a `subprocess.Popen`."""

    def __init__(self, pid: int, stdin: int, stderr: int) -> None:
        self.pid = pid
        self.stdin = io.FileIO(stdin, "w")
        self.stderr = io.FileIO(stderr)
        self.returncode: int | None = None

    def kill(self) -> None:
        if self.returncode is None:
            os.kill(self.pid, signal.SIGKILL)

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
    """Start a broker with these arguments of `python -m broker`, in a new session and with pipes as its stdin and stderr.

    It ends with this process until `ForkedProcess.stdin` gets a byte.
    """
    stdin, confirm = os.pipe()
    reader, stderr = os.pipe()
    # The terminal interrupts both processes: the child must not continue as this program.
    signal.pthread_sigmask(signal.SIG_BLOCK, INTERRUPT)
    try:
        pid = os.fork()
        if pid == 0:
            _become_broker([*arguments, "--starter"], stdin, stderr)
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, INTERRUPT)
    os.close(stdin)
    os.close(stderr)
    return ForkedProcess(pid, confirm, reader)


def _become_broker(arguments: Sequence[str], stdin: int, stderr: int) -> NoReturn:
    code = 1
    try:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, INTERRUPT)
        os.setsid()
        for number, descriptor in ((0, stdin), (1, os.open(os.devnull, os.O_RDWR)), (2, stderr)):
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
