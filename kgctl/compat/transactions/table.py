"""What the commands of kafka-transactions share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kgctl.compat.tool import Session


class Refused(Exception):
    """A command ends with this message."""

    def __init__(self, message: str, exit_code: int = 1) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def show(session: Session, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    lines = [list(map(str, line)) for line in (header, *rows)]
    widths = [max(len(line[at]) for line in lines) for at in range(len(header))]
    for line in lines:
        session.out("".join(f"{cell.ljust(width)}\t" for cell, width in zip(line, widths, strict=True)) + "\n")
