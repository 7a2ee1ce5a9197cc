"""Process trees: the descendants and the ancestors of a process, and killing all of them at once."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterable

from tests.kgctl.pipelines.cluster.waiting import await_that


def below(pid: int) -> list[int]:
    """All descendants of a process."""
    parents = _parents()
    return [one for one in parents if pid in _way_up(one, parents)[1:]]


def way_up(pid: int) -> list[int]:
    """The process, its parent, and so on."""
    return _way_up(pid, _parents())


def kill_family(pid: int) -> list[int]:
    """Kill the process and its descendants, wait until they are gone, and return their ids."""
    family = [pid, *below(pid)]
    kill_all(family)
    for one in family:
        await_end(one)
    return family


def kill_all(pids: Iterable[int]) -> None:
    """SIGKILL, without waiting."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def kill(pid: int) -> None:
    """SIGKILL, and wait until the process is gone."""
    kill_all([pid])
    await_end(pid)


def await_end(pid: int) -> None:
    await_that(lambda: not is_running(pid), f"process {pid} is still there", 30)


def is_running(pid: int) -> bool:
    """Zombies do not count."""
    return not _table(f"-p{pid}", "stat=").startswith(("Z", "X")) and bool(_table(f"-p{pid}", "pid="))


def command_of(pid: int) -> str:
    return _table(f"-p{pid}", "args=")


def _parents() -> dict[int, int]:
    words = _table("-e", "pid=,ppid=").split()
    return dict(zip(map(int, words[::2]), map(int, words[1::2]), strict=True))


def _way_up(pid: int, parents: dict[int, int]) -> list[int]:
    way = [pid]
    while (above := parents.get(way[-1], 0)) and above not in way:
        way.append(above)
    return way


def _table(which: str, columns: str) -> str:
    asked = subprocess.run(["ps", "-ww", which, "-o", columns], capture_output=True, text=True, check=False)
    return asked.stdout.strip()
