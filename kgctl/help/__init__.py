"""Help pages as files, made from the commands by `make docs`: to show one, kgctl need not load its command line.

A page is laid out for terminals of at least 80 columns; it looks the same on wider ones.
"""

from __future__ import annotations

import os

# Without typing and collections, which take longer to load than all else that a help page needs.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

PAGES = os.path.dirname(__file__)
COLUMNS = 80


def page_of(arguments: Sequence[str]) -> str | None:
    """The page that these arguments ask for; None if the command itself has to answer."""
    *names, last = arguments or [""]
    if last not in ("-h", "--help") or not all(name.replace("-", "").isalpha() for name in names):
        return None
    if any(name.startswith("-") for name in names) or _columns() < COLUMNS:
        return None
    try:
        with open(os.path.join(PAGES, file_name(names)), encoding="utf-8") as file:
            return file.read()
    except (OSError, ValueError):
        return None


def file_name(names: Sequence[str]) -> str:
    return ".".join(["kgctl", *names, "txt"])


def _columns() -> int:
    """The width of the terminal as Typer sees it."""
    try:
        given = int(os.environ["COLUMNS"])
    except (KeyError, ValueError):
        given = 0
    if given > 0:
        return given
    try:
        # stdout itself may be a file; Typer asks about it, too.
        found = os.get_terminal_size(1).columns
    except OSError:
        found = 0
    return found or COLUMNS
