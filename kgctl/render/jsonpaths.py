"""Parts of an answer by JSONPath (RFC 9535), one match per line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import jsonpath

from kgctl.render.program import BadFormat, Program
from kgctl.render.table import one_line


def compile_path(text: str) -> Program:
    """Braces around the path, as for kubectl, and the `$` may be left out. Raises BadFormat with the position."""
    inner = text.strip()
    if inner.startswith("{") and inner.endswith("}"):
        inner = inner[1:-1].strip()
    path = inner if inner.startswith("$") else f"${inner}"
    try:
        compiled = jsonpath.compile(path)
    except jsonpath.JSONPathError as error:
        raise BadFormat(f"{text!r}: {_explained(error, text.find(inner) - (len(path) - len(inner)))}.") from error

    def run(envelope: Mapping[str, Any], escaped: bool) -> str:
        try:
            found = compiled.findall(envelope)
        except jsonpath.JSONPathError as error:
            raise BadFormat(f"{text!r}: {error.args[0] if error.args else error}.") from error
        return "".join(_line(value, escaped) for value in found)

    return Program(run)


def _explained(error: Any, shift: int) -> str:
    reason = str(error.args[0] if error.args else error)
    token = getattr(error, "token", None)
    if token is None:
        return reason
    # The end of the path has no index.
    index = token.index if token.index >= 0 else len(token.path)
    return f"{reason}, at character {max(0, index + shift) + 1}"


def _line(value: Any, escaped: bool) -> str:
    """A text as it is, anything else as JSON. A line end inside a text is spelled out: a match is one line."""
    if not isinstance(value, str):
        return json.dumps(value, separators=(",", ":")) + "\n"
    return one_line(value, escaped=escaped) + "\n"
