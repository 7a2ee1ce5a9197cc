"""A session: one page, and the process of the dashboard that it shows.

The process speaks the protocol of Textual's web driver on its standard input and output: a prelude, then packets of a kind
(`D`: what a terminal reads or writes, `M`: JSON), a length in four bytes, and the content.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from asyncio.subprocess import PIPE, Process
from collections.abc import Awaitable, Callable, Mapping, Sequence
from importlib.metadata import version

PRELUDE = b"__GANGLION__\n"
DRIVER = "kgctl.tui.web.driver:SessionDriver"
LARGEST_SIZE = (500, 200)

Show = Callable[[bytes], Awaitable[None]]


class Session:
    """`ending_s`: how long the process may take to end by itself; `terminating_s`: then after SIGTERM."""

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        *,
        ending_s: float = 5.0,
        terminating_s: float = 2.0,
    ) -> None:
        self._command, self._environment = command, environment
        self._patience = (ending_s, terminating_s)
        self._process: Process | None = None
        self._ending = asyncio.Event()
        self._last_words = b""

    async def run(self, size: tuple[int, int], show: Show) -> None:
        """Start the process and give what it draws to `show`, until the process or the session ends."""
        # In a session of its own, Ctrl-C in the terminal reaches only the server, which ends its sessions in order.
        self._process = process = await asyncio.create_subprocess_exec(
            *self._command,
            env={**self._environment, **_screen(size)},
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            start_new_session=True,
        )
        assert process.stdout is not None
        tasks = [asyncio.ensure_future(one) for one in (self._draw(process.stdout, show), self._ending.wait())]
        listening = asyncio.create_task(self._listen())
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._close(process)
            await listening

    def end(self) -> None:
        """Let `run` end the process and return."""
        self._ending.set()

    @property
    def failure(self) -> str | None:
        """The last line that a failed process has written to its stderr."""
        if self._process is None or not self._process.returncode:
            return None
        lines = self._last_words.decode("utf-8", "replace").strip().splitlines()
        return lines[-1] if lines else f"the dashboard ended with exit code {self._process.returncode}"

    async def type(self, text: str) -> None:
        await self._send(b"D", text.encode("utf-8", "replace"))

    async def resize(self, columns: int, lines: int) -> None:
        width, height = bounded(columns, lines)
        await self._send_message({"type": "resize", "width": width, "height": height})

    async def focus(self, has_focus: bool) -> None:
        await self._send_message({"type": "focus" if has_focus else "blur"})

    async def _close(self, process: Process) -> None:
        """Close the input of the process, at which it ends, and wait for that."""
        assert process.stdin is not None
        process.stdin.close()
        ended = asyncio.create_task(_drained(process))
        for within_s, signal_it in zip(self._patience, (process.terminate, process.kill), strict=True):
            await asyncio.wait([ended], timeout=within_s)
            if ended.done():
                break
            with contextlib.suppress(ProcessLookupError):
                signal_it()
        await ended

    async def _send_message(self, message: Mapping[str, object]) -> None:
        await self._send(b"M", json.dumps(message).encode())

    async def _send(self, kind: bytes, content: bytes) -> None:
        process = self._process
        if process is None or process.stdin is None or process.stdin.is_closing():
            return
        with contextlib.suppress(ConnectionError):
            process.stdin.write(kind + len(content).to_bytes(4, "big") + content)
            await process.stdin.drain()

    async def _draw(self, stdout: asyncio.StreamReader, show: Show) -> None:
        await stdout.readuntil(PRELUDE)
        while True:
            head = await stdout.readexactly(5)
            content = await stdout.readexactly(int.from_bytes(head[1:], "big"))
            if head[:1] == b"D":
                await show(content)
            elif head[:1] == b"M" and json.loads(content).get("type") == "exit":
                return

    async def _listen(self) -> None:
        assert self._process is not None
        assert self._process.stderr is not None
        while chunk := await self._process.stderr.read(4096):
            self._last_words = (self._last_words + chunk)[-4096:]


async def _drained(process: Process) -> None:
    """Wait for a process that may still be writing."""
    assert process.stdout is not None
    while await process.stdout.read(65536):
        pass
    await process.wait()


def bounded(columns: int, lines: int) -> tuple[int, int]:
    return max(1, min(columns, LARGEST_SIZE[0])), max(1, min(lines, LARGEST_SIZE[1]))


def _screen(size: tuple[int, int]) -> dict[str, str]:
    """The variables by which Textual knows its screen."""
    columns, lines = bounded(*size)
    return {
        "TEXTUAL_DRIVER": DRIVER,
        "TEXTUAL_COLOR_SYSTEM": "truecolor",
        "TERM": "xterm-256color",
        "TERM_PROGRAM": "textual",
        "TERM_PROGRAM_VERSION": version("textual-serve"),
        "COLUMNS": str(columns),
        "ROWS": str(lines),
    }
