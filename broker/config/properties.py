"""Java .properties files: comments, `=` `:` or blank as separator, continued lines, escapes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from broker.config.option import ConfigError

ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPED = {char: f"\\{name}" for name, char in ESCAPES.items()} | {"\\": "\\\\"}
HEX_DIGITS = frozenset("0123456789abcdefABCDEF")


def read_properties(path: Path) -> list[tuple[int, str, str]]:
    """The pairs of a file as (line number, name, value). Raises ConfigError, with the line where there is one."""
    try:
        content = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read config file {path}: {getattr(error, 'strerror', None) or error}") from None
    found = []
    for number, line in _logical_lines(content):
        try:
            found.append((number, *_split_pair(line)))
        except ConfigError as error:
            raise ConfigError(f"{path}, line {number}: {error}") from None
    return found


def parse_properties(text: str) -> dict[str, str]:
    """The pairs of a text; the last value of a name wins."""
    return dict(_split_pair(line) for _, line in _logical_lines(text))


def format_properties(values: Mapping[str, str]) -> str:
    """The content of a file with these pairs. It is ASCII, because Java reads such files as ISO 8859-1."""
    return "".join(f"{name}={_escape(text)}\n" for name, text in values.items())


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines joined with their continuations, each with the number of its first line."""
    joined, first = "", 0
    for number, natural in enumerate(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), 1):
        line = natural.lstrip(" \t\f")
        if not joined:
            if not line or line[0] in "#!":
                continue
            first = number
        joined += line
        if (len(line) - len(line.rstrip("\\"))) % 2:
            joined = joined[:-1]
            continue
        yield first, joined
        joined = ""
    if joined:
        yield first, joined


def _split_pair(line: str) -> tuple[str, str]:
    end = 0
    while end < len(line) and line[end] not in "=: \t\f":
        end += 2 if line[end] == "\\" else 1
    rest = line[end:].lstrip(" \t\f")
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(" \t\f")
    return _unescape(line[:end]), _unescape(rest)


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    out, at = "", 0
    while at < len(text):
        char = text[at]
        at += 1
        if char != "\\":
            out += char
        elif text[at : at + 1] == "u":
            digits = text[at + 1 : at + 5]
            if len(digits) < 4 or not HEX_DIGITS.issuperset(digits):
                raise ConfigError(f"malformed \\u escape in {text!r}")
            out += chr(int(digits, 16))
            at += 5
        else:
            out += ESCAPES.get(text[at : at + 1], text[at : at + 1])
            at += 1
    # Java writes a character beyond 16 bits as two escapes.
    return out.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def _escape(text: str) -> str:
    body = "".join(_ESCAPED.get(char) or (char if char.isascii() else _in_hex(char)) for char in text)
    return f"\\{body}" if body.startswith(" ") else body


def _in_hex(char: str) -> str:
    units = char.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
