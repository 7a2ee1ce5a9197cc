"""Benchmarks of the dashboard: the time of a redraw, and from a change in the broker to the screen of a terminal."""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import re
import select
import signal
import statistics
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from bench import wire
from bench.groups import Census
from bench.wire import Refused
from broker.protocol.messages.leave_group import LeaveGroupRequest
from kgctl.client.net.bootstrap import parse
from kgctl.client.net.connector import ConnectionSettings
from kgctl.tui.app import KgctlApp
from kgctl.tui.feed.cluster import ClusterFeed
from kgctl.tui.once import rendered
from kgctl.tui.screens.groups import GroupsScreen

COLUMNS, LINES = 120, 40
REDRAWS = 15
REFRESHES = 3
ROW = "bench-group-"
INTERVAL_S = 0.5
CHANGES = 5
LONGEST_S = 30.0
CURRENT = "\N{BLACK CIRCLE} ".encode()
ESCAPE = re.compile(rb"\x1b\[[0-9;:?]*[a-zA-Z]")


class Redraws(NamedTuple):
    """`took_s`: the median time of a redraw; `gap_s`: the longest time for which the event loop served no other task."""

    took_s: float
    gap_s: float


def redraws(bootstrap: str, census: Census) -> Redraws:
    """Show new rows of all groups and render every line, again and again, without any time of the broker."""
    return asyncio.run(_redraws(bootstrap, census))


async def _redraws(bootstrap: str, census: Census) -> Redraws:
    feed = ClusterFeed(ConnectionSettings(parse(bootstrap), timeout=LONGEST_S))
    app = KgctlApp(feed, interval_s=3600)
    try:
        async with app.run_test(size=(COLUMNS, LINES)) as pilot:
            screen = app.screen
            assert isinstance(screen, GroupsScreen)
            while not screen.polling.answers:
                await asyncio.sleep(0.01)
            observed = screen.polling.last
            if observed is None or len(observed.snapshot.groups) < len(census.names):
                raise Refused("the dashboard does not have all groups")
            times = []
            for _ in range(REDRAWS):
                await pilot.pause()
                began = time.perf_counter()
                screen.answered(observed)
                text = rendered(app, colors=True)
                times.append(time.perf_counter() - began)
                if ROW not in text:
                    raise Refused("the dashboard does not show the groups")
            return Redraws(statistics.median(times), await _longest_gap_s(app))
    finally:
        feed.close()


async def _longest_gap_s(app: KgctlApp) -> float:
    """The longest time between two turns of the event loop during whole refreshes: ask, judge, show."""
    polling, longest_s = app.background.polling, 0.0
    for _ in range(REFRESHES):
        answers = polling.answers
        polling.now()
        turn_s = time.perf_counter()
        while polling.answers == answers:
            await asyncio.sleep(0)
            longest_s, turn_s = max(longest_s, time.perf_counter() - turn_s), time.perf_counter()
    return longest_s


def change_shown_s(address: tuple[str, int]) -> float:
    """The median time from a LeaveGroup of the last member to the new state on the screen of a terminal."""
    times = []
    with wire.connect(address) as sock:
        for _ in range(CHANGES):
            group = f"bench-shown-{time.time_ns()}"
            member_id, _ = wire.join_alone(sock, group)
            leave = LeaveGroupRequest(group_id=group, members=[LeaveGroupRequest.Member(member_id=member_id)])
            with _dashboard(":".join(map(str, address)), group) as screen:
                _read_until(screen, CURRENT + b"Stable")
                began = time.perf_counter()
                wire.ask(sock, leave)
                _read_until(screen, CURRENT + b"Empty")
                times.append(time.perf_counter() - began)
    return statistics.median(times)


@contextmanager
def _dashboard(bootstrap: str, group: str) -> Iterator[int]:
    """Run the dashboard in a pseudo-terminal; yield the descriptor from which its output can be read."""
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONDONTWRITEBYTECODE", "NO_COLOR")}
    environment |= {"PYTHONPATH": str(Path(__file__).resolve().parents[1]), "TERM": "xterm-256color"}
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
    command = [sys.executable, "-P", "-m", "kgctl", "ui", group, "--bootstrap", bootstrap]
    command += ["--interval", str(INTERVAL_S)]
    child = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    try:
        yield ours
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()
        os.close(ours)


def _read_until(screen: int, text: bytes) -> None:
    output, deadline = b"", time.perf_counter() + LONGEST_S
    while text not in ESCAPE.sub(b"", output):
        left = deadline - time.perf_counter()
        if left <= 0 or not select.select([screen], [], [], left)[0]:
            raise Refused(f"the dashboard did not show {text.decode()!r} within {LONGEST_S:.0f} s")
        output += os.read(screen, 65536)
