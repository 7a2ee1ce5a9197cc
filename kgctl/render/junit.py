"""JUnit XML, as CI systems read it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from broker.light_named_tuples import NamedTuple

# XML 1.0 has no way to write these.
_NOT_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class Case(NamedTuple):
    """A check of a group. `message` says why it failed; `is_error`: it could not be checked, or the group does not exist."""

    group: str
    condition: str
    seconds: float
    message: str | None = None
    is_error: bool = False


def junit_xml(command: str, cases: Sequence[Case]) -> str:
    errors = sum(case.message is not None and case.is_error for case in cases)
    failed = sum(case.message is not None and not case.is_error for case in cases)
    counts = f'tests="{len(cases)}" failures="{failed}" errors="{errors}" skipped="0"'
    total = sum(case.seconds for case in cases)
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<testsuites {counts} time="{total:.3f}">',
        f'  <testsuite name={_quoted(command)} {counts} time="{total:.3f}">',
        *(line for case in cases for line in _lines(command, case)),
        "  </testsuite>",
        "</testsuites>",
    ]
    return "\n".join(lines) + "\n"


def _lines(command: str, case: Case) -> list[str]:
    name = _quoted(f"{case.group}: {case.condition}")
    head = f'    <testcase classname={_quoted(command.replace(" ", "."))} name={name} time="{case.seconds:.3f}"'
    if case.message is None:
        return [f"{head}/>"]
    kind = "error" if case.is_error else "failure"
    return [f"{head}>", f"      <{kind} message={_quoted(case.message)}/>", "    </testcase>"]


def _quoted(text: str) -> str:
    from xml.sax.saxutils import quoteattr

    return quoteattr(_NOT_XML.sub("?", text))
