"""Runs a command for each event with a verdict: without a shell, a few at a time, for a limited time."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shlex
import signal
from collections.abc import Callable, Mapping, Sequence
from shutil import which

from kgctl.model.cluster_view import ClusterEvent
from kgctl.render.table import printable

AT_ONCE, MOST_WAITING, TIMEOUT_S = 4, 100, 30.0
STEP_S = 0.2
LONGEST_VALUE, LONGEST_ERROR = 4_000, 200
# Linux starts no program with a variable of 128 KiB.
LONGEST_NAMES = 100_000


class BadCommand(ValueError):
    """The command cannot be run; the message says why."""


def split(text: str) -> Sequence[str]:
    """The program and its arguments. Raises BadCommand if there is no such program."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise BadCommand(f"{text!r}: {error}") from None
    if not words:
        raise BadCommand("an empty command")
    if which(words[0]) is None:
        raise BadCommand(f"{words[0]!r} is not a program that can be run")
    return words


def variables(event: ClusterEvent) -> Mapping[str, str]:
    """What the command learns about a change."""
    changes = event.parts or (event,)
    before = {one.was for one in changes}
    was = changes[0].was if len(before) == 1 else None
    values = {
        "KGCTL_GROUP": _whom(event),
        "KGCTL_VERDICT": event.health.value if event.health else "",
        "KGCTL_WAS": was.value if was else "",
        "KGCTL_REASON": f"{changes[0].group}: {changes[0].text}" if event.parts else event.text,
        "KGCTL_GROUP_COUNT": str(len(event.groups)),
    }
    # Names of groups may contain NUL, which no variable can.
    cut = {name: value.replace("\0", "\\0")[:LONGEST_VALUE] for name, value in values.items()}
    return {**cut, "KGCTL_GROUPS": _names(event.groups)}


def _whom(event: ClusterEvent) -> str:
    """The group, or what the list of events says about several."""
    return event.text if event.parts else event.group or ""


def _names(groups: Sequence[str]) -> str:
    """A JSON array of the first names: of all that fit into a variable."""
    found: list[str] = []
    length = 2
    for one in map(json.dumps, groups):
        length += len(one) + 2
        if length > LONGEST_NAMES:
            break
        found.append(one)
    return f"[{', '.join(found)}]"


class AlertCommand:
    """`failed` gets a sentence when the command fails or alerts are dropped. `run` must be running."""

    def __init__(self, words: Sequence[str], failed: Callable[[str], None], *, timeout_s: float = TIMEOUT_S) -> None:
        self._words, self._failed, self._timeout_s = words, failed, timeout_s
        self._waiting: asyncio.Queue[ClusterEvent] = asyncio.Queue(MOST_WAITING)

    def add(self, events: Sequence[ClusterEvent]) -> None:
        """Run the command for each of these."""
        for place, event in enumerate(events):
            try:
                self._waiting.put_nowait(event)
            except asyncio.QueueFull:
                dropped = len(events) - place
                self._failed(f"{dropped:,} alerts were dropped: {MOST_WAITING} commands are waiting already.")
                return

    async def run(self) -> None:
        """Run commands until this is cancelled, which ends those that are running."""
        async with asyncio.TaskGroup() as tasks:
            for _ in range(AT_ONCE):
                tasks.create_task(self._work())

    async def _work(self) -> None:
        while True:
            event = await self._waiting.get()
            reason = await self._run(event)
            if reason:
                self._failed(f"The alert command failed for {printable(_whom(event))}: {reason}")

    async def _run(self, event: ClusterEvent) -> str:
        """The reason if the command fails."""
        try:
            process = await asyncio.create_subprocess_exec(
                *self._words,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE,
                env={**os.environ, **variables(event)},
                # Keys such as ctrl+c are for the dashboard alone.
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            return getattr(error, "strerror", None) or str(error)
        reading = asyncio.create_task(_last_line(process))
        try:
            async with asyncio.timeout(self._timeout_s):
                while process.returncode is None and not reading.done():
                    await asyncio.wait({reading}, timeout=STEP_S)
                code = process.returncode if process.returncode is not None else await process.wait()
                # What the command has left running may keep its stderr open.
                await asyncio.wait({reading}, timeout=STEP_S)
                said = reading.result() if reading.done() else ""
        except TimeoutError:
            return f"no end after {self._timeout_s:g} s"
        finally:
            reading.cancel()
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
                await process.wait()
        if code == 0:
            return ""
        ended = f"exit code {code}" if code > 0 else f"signal {-code}"
        return f"{ended}: {said}" if said else ended


async def _last_line(process: asyncio.subprocess.Process) -> str:
    """The end of what the command writes to stderr; the rest is read and dropped."""
    assert process.stderr is not None
    tail = b""
    while chunk := await process.stderr.read(4_096):
        tail = (tail + chunk)[-4_096:]
    lines = tail.decode(errors="replace").strip().splitlines()
    return printable(lines[-1])[:LONGEST_ERROR] if lines else ""
