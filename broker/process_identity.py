"""Which process a pid means: pids repeat over time, and each PID namespace (container) has its own."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
from collections.abc import Iterator
from typing import Any

from broker.light_named_tuples import NamedTuple


class OtherProcessError(Exception):
    """The process with this pid is not, or may not be, the one that was meant. The text says why."""


class ProcessIdentity(NamedTuple):
    """A process, recognizable also to other processes on the machine. None: the system does not say."""

    pid: int
    pid_namespace: int | None  # inode of the namespace; 0 on systems that have no namespaces
    start_time: int | None  # Linux: clock ticks since boot; macOS: microseconds since 1970

    @classmethod
    def own(cls) -> ProcessIdentity:
        # /proc/self is this process even where /proc shows the pids of another namespace.
        return cls(os.getpid(), _own_pid_namespace(), _start_time(os.getpid(), "self"))

    @classmethod
    def from_bytes(cls, content: bytes) -> ProcessIdentity | None:
        """None if they are not an identity. Older versions wrote only the pid."""
        try:
            parsed: Any = json.loads(content)
        except ValueError:
            return None
        if _is_int(parsed):
            return cls(parsed, None, None)
        if not isinstance(parsed, dict) or not _is_int(parsed.get("pid")):
            return None
        namespace, start_time = parsed.get("pid_namespace"), parsed.get("start_time")
        return cls(
            parsed["pid"], namespace if _is_int(namespace) else None, start_time if _is_int(start_time) else None
        )

    def to_bytes(self) -> bytes:
        return json.dumps(self._asdict()).encode() + b"\n"

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal to exactly this process.

        Raises OtherProcessError, ProcessLookupError if it has ended, PermissionError.
        """
        if self.pid <= 0 or self.pid_namespace is None or self.start_time is None:
            raise OtherProcessError("which process this is cannot be verified; an older version may have started it")
        if self.pid_namespace != _own_pid_namespace():
            raise OtherProcessError("it runs in another PID namespace, such as a container")
        if not _proc_shows_own_namespace():
            raise OtherProcessError("/proc shows the processes of another PID namespace")
        with _process_handle(self.pid) as handle:
            start_time = _start_time(self.pid, str(self.pid))
            if start_time is None:
                # The process may be hidden rather than gone.
                os.kill(self.pid, 0)
                raise OtherProcessError("the start time of the process with this pid is unknown")
            if start_time != self.start_time:
                raise OtherProcessError("the process with this pid started at another time")
            if handle is None:
                os.kill(self.pid, number)
            else:
                signal.pidfd_send_signal(handle, number)


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


@contextlib.contextmanager
def _process_handle(pid: int) -> Iterator[int | None]:
    """A descriptor that keeps meaning the same process, if the system has such."""
    if not hasattr(os, "pidfd_open"):
        yield None
        return
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        raise
    except OSError:
        # An old kernel, or a sandbox that does not allow it.
        yield None
        return
    try:
        yield handle
    finally:
        os.close(handle)


def _own_pid_namespace() -> int | None:
    if sys.platform != "linux":
        return 0
    try:
        return os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        return None


def _proc_shows_own_namespace() -> bool:
    if sys.platform != "linux":
        return True
    try:
        return os.readlink("/proc/self") == str(os.getpid())
    except OSError:
        return False


def _start_time(pid: int, name: str) -> int | None:
    """When the process started; `name` is its entry in /proc. None if there is none or it cannot be read."""
    if sys.platform == "darwin":
        return _darwin_start_time(pid)
    try:
        with open(f"/proc/{name}/stat", "rb") as file:
            # The second field is the name of the program in parentheses, which may contain anything.
            return int(file.read().rpartition(b")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return None


def _darwin_start_time(pid: int) -> int | None:
    import ctypes

    # struct proc_bsdinfo (136 bytes) ends in pbi_start_tvsec and pbi_start_tvusec.
    pidtbsdinfo, size = 3, 136
    answer = ctypes.create_string_buffer(size)
    try:
        if ctypes.CDLL(None).proc_pidinfo(pid, pidtbsdinfo, ctypes.c_uint64(0), answer, size) != size:
            return None
    except AttributeError:
        return None
    seconds, microseconds = (int.from_bytes(answer.raw[at : at + 8], sys.byteorder) for at in (120, 128))
    return seconds * 1_000_000 + microseconds
