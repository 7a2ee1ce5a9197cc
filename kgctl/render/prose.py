"""Paragraphs before a table, wrapped to the terminal."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Sequence

from kgctl.render.table import printable

WIDEST = 100


def show_paragraphs(texts: Sequence[str]) -> None:
    """Write each text to stdout as a paragraph, followed by an empty line."""
    width = min(WIDEST, shutil.get_terminal_size().columns)
    for text in texts:
        sys.stdout.write("\n".join(textwrap.wrap(printable(text), width)) + "\n\n")
