"""Rows through a Jinja2 template of the user, in a sandbox: it sees the answer and nothing else."""

from __future__ import annotations

import json
import traceback
from collections.abc import Mapping
from typing import Any

from jinja2 import StrictUndefined, TemplateSyntaxError, meta
from jinja2.sandbox import ImmutableSandboxedEnvironment

from kgctl.render.program import BadFormat, Program
from kgctl.render.table import printable

WHOLE = ("rows", "errors")
_ALWAYS = ("version", "kind", "row")


def compile_template(text: str, origin: str = "the template") -> Program:
    """A template that uses `rows` or `errors` is rendered once, any other one for each row, with its fields as variables.

    Raises BadFormat with the line.
    """
    environment = ImmutableSandboxedEnvironment(
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    try:
        names = meta.find_undeclared_variables(environment.parse(text)) - set(environment.globals)
        programs = {True: environment.overlay(finalize=_for_terminal), False: environment.overlay(finalize=_text)}
        templates = {escaped: one.from_string(text) for escaped, one in programs.items()}
    except TemplateSyntaxError as error:
        raise BadFormat(f"{origin}, line {error.lineno}: {_sentence(error.message)}") from error

    def render(template: Any, values: Mapping[str, Any]) -> str:
        try:
            found = str(template.render(values))
        except Exception as error:
            raise BadFormat(_explained(error, origin, values)) from error
        return found if not found or found.endswith("\n") else found + "\n"

    def run(envelope: Mapping[str, Any], escaped: bool) -> str:
        template = templates[escaped]
        if not names or names.intersection(WHOLE):
            return render(template, envelope)
        return "".join(render(template, {**envelope, **row, "row": row}) for row in envelope["rows"])

    return Program(run, frozenset() if names.intersection(WHOLE) else frozenset(names - set(_ALWAYS)))


def _text(value: Any) -> Any:
    """JSON's words for values that are no texts; nothing for null."""
    if value is None:
        return ""
    return json.dumps(value) if isinstance(value, bool | list | dict) else value


def _for_terminal(value: Any) -> Any:
    """The same with control characters spelled out, so that a name cannot command the terminal."""
    found = _text(value)
    if not isinstance(found, str) or found.isprintable():
        return found
    return "".join(char if char in "\n\t" else printable(char) for char in found)


def _explained(error: Exception, origin: str, values: Mapping[str, Any]) -> str:
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == "<template>"]
    place = f"{origin}, line {lines[-1]}" if lines else origin
    known = ", ".join(name for name in values if name not in _ALWAYS)
    hint = f" (known here: {known})" if type(error).__name__ == "UndefinedError" else ""
    return _sentence(f"{place}: {error}{hint}")


def _sentence(text: str | None) -> str:
    return f"{(text or '').rstrip('.')}."
