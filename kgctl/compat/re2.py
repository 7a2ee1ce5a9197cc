"""Whether a regular expression is valid in RE2's syntax, with RE2's words for what is wrong.

Python's parser decides, after what the two syntaxes have not in common is checked or replaced.
"""

from __future__ import annotations

import re

_LARGEST_COUNT = 1000
_PERL, _NESTED, _RANGE = (
    "invalid or unsupported Perl syntax",
    "invalid nested repetition operator",
    "invalid character class range",
)
_COUNT = "invalid repeat count"
# What RE2 does not have; an escaped character is skipped.
_ABSENT = (
    (r"\(\?<[=!]", "invalid named capture"),
    (r"\(\?(?:[=!>#(]|P=)", _PERL),
    (r"[*+?}][*+]", _NESTED),
)
_CLASSES = "alnum|alpha|ascii|blank|cntrl|digit|graph|lower|print|punct|space|upper|word|xdigit"
# What Python does not have, and what stands for it here.
_REPLACED = (
    (r"\\Q(.*?)(?:\\E|$)", lambda found: re.escape(found[1])),
    (r"\\[pP](?:\w|\{\^?\w+\})", lambda _: r"\w"),
    (r"\\z", lambda _: r"\Z"),
    (rf"\[:\^?(?:{_CLASSES}):\]", lambda _: r"\w"),
)
_REASONS = {
    "missing ), unterminated subpattern": "missing closing )",
    "unterminated character set": "missing closing ]",
    "nothing to repeat": "missing argument to repetition operator",
    "multiple repeat": _NESTED,
    "bad escape": "invalid escape sequence",
    "unbalanced parenthesis": "regexp/syntax: internal error",
    "bad character range": _RANGE,
    "min repeat greater than max repeat": _COUNT,
}


def flaw(regex: str) -> str | None:
    """Why RE2 refuses the expression; None if it is valid."""
    text = regex
    for pattern, replacement in _REPLACED:
        text = re.sub(pattern, replacement, text)
    if len(text) - len(text.rstrip("\\")) & 1:
        return "trailing backslash at end of expression"
    plain = re.sub(r"\\.", "xx", text)
    if re.search(r"\[:\w+:\]", plain):
        return _RANGE
    outside = re.sub(r"\[[^]]+\]", "x", plain)
    found = next((reason for pattern, reason in _ABSENT if re.search(pattern, outside)), None)
    if found:
        return found
    if any(int(count) > _LARGEST_COUNT for count in re.findall(r"\{(?:\d*,)?(\d+)", outside)):
        return _COUNT
    if re.search(r"(?:^|[^\\])(?:\\\\)*\\[1-9]", text):
        return "invalid escape sequence"
    try:
        re.compile(text)
    except re.error as error:
        return next((ours for theirs, ours in _REASONS.items() if error.msg.startswith(theirs)), _PERL)
    return None
