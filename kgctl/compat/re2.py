"""Whether a regular expression is valid in RE2's syntax, with RE2's words for what is wrong."""

from __future__ import annotations

import re

_REASONS = {
    "missing ), unterminated subpattern": "missing closing )",
    "unterminated character set": "missing closing ]",
    "nothing to repeat": "missing argument to repetition operator",
    "multiple repeat": "invalid nested repetition operator",
    "bad escape": "invalid escape sequence",
    "unbalanced parenthesis": "unexpected )",
    "bad character range": "invalid character class range",
    "min repeat greater than max repeat": "bad repetition operator",
}


def flaw(regex: str) -> str | None:
    """Why RE2 refuses the expression; None if it is valid."""
    if regex.endswith("\\") and not regex.endswith("\\\\"):
        return "trailing backslash at end of expression"
    if re.search(r"\(\?(?:[=!]|<[=!])", regex):
        return "invalid or unsupported Perl syntax"
    if re.search(r"(?<!\\)\\[1-9]", regex):
        return "invalid escape sequence"
    try:
        re.compile(regex)
    except re.error as error:
        found = next((ours for theirs, ours in _REASONS.items() if error.msg.startswith(theirs)), None)
        return found or "invalid or unsupported Perl syntax"
    return None
