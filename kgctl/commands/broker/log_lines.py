"""Lines of the broker's log, as `kgctl broker` prints them."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import IO, TYPE_CHECKING

from kgctl.commands.shared.settings import settings
from kgctl.model.local_broker import LogLineRow
from kgctl.render import TABLES

if TYPE_CHECKING:
    import typer

LOG_LINE = re.compile(r"(?P<time>\S+Z) (?P<level>[A-Z]+) (?P<logger>\S+) (?P<message>.*)", re.DOTALL)
FOLLOW_INTERVAL_S = 0.2


def line_renderer(ctx: typer.Context) -> Callable[[str], str]:
    """How `logs` prints a line in the chosen output format."""
    output = settings(ctx).output
    if output in TABLES:
        return str
    if output in ("json", "jsonl"):
        return lambda line: json.dumps(asdict(parse_log_line(line))) + "\n"
    import typer

    raise typer.BadParameter(
        f"{output!r} is not available for log lines; use table (plain lines) or jsonl (one object per line).",
        ctx=ctx,
        param_hint="'-o'",
    )


def parse_log_line(line: str) -> LogLineRow:
    text = line.rstrip("\n")
    found = LOG_LINE.fullmatch(text)
    return LogLineRow(**found.groupdict()) if found else LogLineRow(None, None, None, text)


def follow_log(path: Path, stream: IO[str], render: Callable[[str], str]) -> None:
    """Print new lines as they arrive. After a rotation, continue with the file that replaced this one."""
    current = stream
    partial = ""

    def print_new_lines() -> None:
        nonlocal partial
        for chunk in current:
            partial += chunk
            if partial.endswith("\n"):
                sys.stdout.write(render(partial))
                partial = ""

    try:
        while True:
            print_new_lines()
            sys.stdout.flush()
            time.sleep(FOLLOW_INTERVAL_S)
            if _was_replaced(path, current):
                print_new_lines()
                new = path.open(encoding="utf-8", errors="replace")
                if current is not stream:
                    current.close()
                current = new
    finally:
        if current is not stream:
            current.close()


def _was_replaced(path: Path, stream: IO[str]) -> bool:
    try:
        return path.stat().st_ino != os.fstat(stream.fileno()).st_ino
    except FileNotFoundError:
        return False
