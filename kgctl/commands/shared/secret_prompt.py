"""Asks for a secret on the terminal."""

from __future__ import annotations

import getpass

from kgctl.render import note


def typed_secret(question: str) -> str:
    """What the user types, without echo; empty if the input ends (Ctrl-D)."""
    try:
        return getpass.getpass(question)
    except EOFError:
        note("")
        return ""
