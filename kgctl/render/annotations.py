"""Annotations of GitHub Actions: lines that the runner turns into errors of the job."""

from __future__ import annotations

_ESCAPES = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_IN_PROPERTIES = {":": "%3A", ",": "%2C"}


def annotation(title: str, message: str) -> str:
    return f"::error title={_escaped(title, {**_ESCAPES, **_IN_PROPERTIES})}::{_escaped(message, _ESCAPES)}"


def _escaped(text: str, escapes: dict[str, str]) -> str:
    return "".join(escapes.get(letter, letter) for letter in text)
