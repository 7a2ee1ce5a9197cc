"""The values of --output: tables, formats for programs, and the templates and paths of the user."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from kgctl.render.program import BadFormat, Program

TABLES = ("table", "wide")
FORMATS = (*TABLES, "name", "json", "jsonl", "yaml", "csv")
WITH_TEXT = {"template": "TEXT", "template-file": "FILE", "jsonpath": "PATH"}
SHOWN = (*FORMATS, *(f"{name}={value}" for name, value in WITH_TEXT.items()))


def check(output: str) -> None:
    """Raises BadFormat. Compiles a template or path, so that its errors show before a cluster is asked."""
    name, equals, _ = output.partition("=")
    if name in WITH_TEXT:
        if not equals:
            raise BadFormat(f"{name} needs a value: {name}={WITH_TEXT[name]}.")
        program_of(output)
    elif output not in FORMATS:
        raise BadFormat(f"{output!r} is not one of {', '.join(SHOWN)}.")


def is_program(output: str) -> bool:
    return output.partition("=")[0] in WITH_TEXT


def check_fields(output: str, keys: Iterable[str]) -> None:
    """Raise BadFormat if the template needs a field that no row has."""
    known = list(dict.fromkeys(keys))
    for name in sorted(program_of(output).fields.difference(known)):
        raise BadFormat(f"{name!r} is not a field of a row: {', '.join(known)}.")


@cache
def program_of(output: str) -> Program:
    """The template or path, compiled. Raises BadFormat."""
    name, _, text = output.partition("=")
    if name == "jsonpath":
        from kgctl.render.jsonpaths import compile_path

        return compile_path(text)
    from kgctl.render.templates import compile_template

    if name == "template":
        # As `docker --format`: a shell has no easy way to write a tab.
        return compile_template(text.replace("\\t", "\t").replace("\\n", "\n"))
    try:
        with open(text, encoding="utf-8") as file:
            return compile_template(file.read(), origin=text)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise BadFormat(f"cannot read {text!r}: {reason}.") from error
