"""Modules of the user that an option names as MODULE:NAME."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable


def allow_own_modules(names: Iterable[str]) -> None:
    """Let modules in the current folder be found, as `python -m` does, if one of the names is MODULE:NAME.

    The folder comes last, so that it replaces nothing.
    """
    if any(":" in name for name in names):
        folder = os.getcwd()
        if folder not in sys.path:
            sys.path.append(folder)
