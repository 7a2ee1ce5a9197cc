"""Backslash escapes in separators, as in C."""

from __future__ import annotations

import re

import typer

_ESCAPE = re.compile(rb"\\(x[0-9a-fA-F]{2}|.|$)", re.DOTALL)
_MEANINGS = {b"t": b"\t", b"n": b"\n", b"r": b"\r", b"0": b"\0", b"\\": b"\\"}


def unescape(text: str, option: str) -> bytes:
    """The text as bytes, with \\t, \\n, \\r, \\0, \\\\ and \\xHH replaced."""

    def replace(match: re.Match[bytes]) -> bytes:
        name = match[1]
        if name in _MEANINGS:
            return _MEANINGS[name]
        if name[:1] == b"x" and len(name) == 3:
            return bytes([int(name[1:], 16)])
        raise typer.BadParameter(
            f"{match[0].decode(errors='replace')!r} is not an escape; write a backslash as \\\\.",
            param_hint=f"'{option}'",
        )

    return _ESCAPE.sub(replace, text.encode("utf-8", "surrogateescape"))
