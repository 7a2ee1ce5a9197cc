"""Reads a file of contexts: the user's config.toml, or the .kgctl.toml of a project."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from broker.light_dataclasses import dataclass, field
from broker.secret_names import is_secret
from broker.security.secret import Secret
from kgctl.contexts.names import (
    COLOR,
    COLORS,
    CONFIRM,
    MAX_TIMEOUT_S,
    OWN,
    READ_ONLY,
    TIMEOUT,
    BadContext,
    check_name,
    is_known,
    unknown,
)
from kgctl.contexts.private_files import read_bytes
from kgctl.contexts.values import KINDS, Value, reference

CONTEXTS, CHOICE = "contexts", "context"
_PART = re.compile(r"""\s*("(?:[^"\\]|\\.)*"|'[^']*'|[A-Za-z0-9_-]+)\s*""")
_PLACE = re.compile(r"(?P<what>.*) \(at (?:line (?P<line>\d+), column \d+|end of document)\)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Context:
    """`settings` by name: Kafka's properties and kgctl's own. `lines` are their places in the file, where known."""

    name: str
    path: Path
    settings: Mapping[str, Value]
    lines: Mapping[str, int] = field(default_factory=dict)

    def where(self, name: str) -> str:
        line = self.lines.get(name)
        return f"{self.path}, line {line}" if line else str(self.path)

    @property
    def literal_secrets(self) -> list[str]:
        """The settings whose secret stands in the file itself."""
        return [name for name, value in self.settings.items() if isinstance(value, Secret)]


@dataclass(frozen=True, slots=True)
class ContextFile:
    """`choice` is the context that a project's file makes the current one."""

    path: Path
    contexts: Mapping[str, Context]
    choice: str | None = None


def read_file(path: Path) -> ContextFile | None:
    """None if there is no such file. Raises BadContext with the line of what is wrong."""
    content = read_bytes(path)
    return None if content is None else parse(content, path)


def parse(content: bytes, path: Path, *, with_choice: bool = False) -> ContextFile:
    """`with_choice`: the file may name the current context, as a project's file does. Raises BadContext."""
    import tomllib

    try:
        text = content.decode("utf-8")
        document = tomllib.loads(text)
    except UnicodeDecodeError:
        raise BadContext(f"{path}: the file is not UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise _bad_toml(path, str(error), text) from None
    reader = _Reader(path, text, with_choice)
    return reader.read(document)


def _bad_toml(path: Path, message: str, text: str) -> BadContext:
    found = _PLACE.fullmatch(message)
    what = found["what"] if found else message
    # Without a number, the error is at the end of the file.
    line = (found and found["line"]) or text.count("\n") + 1
    return BadContext(f"{path}, line {line}: this is not TOML: {what[:1].lower()}{what[1:]}")


class _Reader:
    def __init__(self, path: Path, text: str, with_choice: bool) -> None:
        self._path, self._text, self._with_choice = path, text, with_choice

    def read(self, document: dict[str, object]) -> ContextFile:
        choice = document.pop(CHOICE, None) if self._with_choice else None
        tables = document.pop(CONTEXTS, {})
        for name in document:
            allowed = f"[{CONTEXTS}.NAME]" + (f" and {CHOICE}" if self._with_choice else "")
            raise self._bad((name,), f"unknown setting {name!r}; the file can have {allowed}")
        if not isinstance(tables, dict):
            raise self._bad((CONTEXTS,), f"write [{CONTEXTS}.NAME]")
        if choice is not None and not (isinstance(choice, str) and choice):
            raise self._bad((CHOICE,), f'write {CHOICE} = "NAME"')
        return ContextFile(self._path, {name: self._context(name, table) for name, table in tables.items()}, choice)

    def _context(self, name: str, table: object) -> Context:
        try:
            check_name(name)
        except BadContext as error:
            raise self._bad((CONTEXTS, name), str(error)) from None
        if not isinstance(table, dict):
            raise self._bad((CONTEXTS, name), f"write [{CONTEXTS}.{name}]")
        settings: dict[str, Value] = {}
        lines: dict[str, int] = {}
        for keys, raw in _leaves(table):
            setting, place = ".".join(keys), (CONTEXTS, name, *keys)
            if setting in settings:
                raise self._bad(place, f"{setting!r} is set twice")
            try:
                settings[setting] = value_of(setting, raw, self._path.parent)
            except ValueError as error:
                raise self._bad(place, str(error)) from None
            line = self._line(place)
            if line is not None:
                lines[setting] = line
        return Context(name, self._path, settings, lines)

    def _bad(self, place: tuple[str, ...], what: str) -> BadContext:
        line = self._line(place)
        return BadContext(f"{self._path}{f', line {line}' if line else ''}: {what}")

    def _line(self, place: tuple[str, ...]) -> int | None:
        """The line that sets this key, or that opens this table. tomllib does not say."""
        table: tuple[str, ...] = ()
        for number, line in enumerate(self._text.splitlines(), 1):
            header = line.strip()
            if header.startswith("["):
                table = _keys(header.lstrip("["))
                if table[: len(place)] == place:
                    return number
                continue
            keys = _keys(line)
            full = (*table, *keys)
            if (keys and full[: len(place)] == place) or (keys and place[: len(full)] == full and "{" in line):
                return number
        return None


def value_of(name: str, raw: object, folder: Path) -> Value:
    """The value of a setting as TOML has it; a literal secret becomes a Secret. Raises ValueError, which says what is wrong."""
    if not is_known(name):
        raise ValueError(unknown(name))
    if name in OWN:
        return _own(name, raw)
    if isinstance(raw, dict):
        if len(raw) != 1:
            raise ValueError(f"{name}: write one of {', '.join(f'{{ {kind} = ... }}' for kind in KINDS)}")
        ((kind, what),) = raw.items()
        try:
            return reference(kind, what, folder)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    if isinstance(raw, bool):
        return str(raw).lower()
    if not isinstance(raw, str | int | float):
        raise ValueError(f"{name}: write a text")
    return Secret(str(raw)) if is_secret(name) else str(raw)


def _own(name: str, raw: object) -> str:
    if name in (READ_ONLY, CONFIRM):
        if not isinstance(raw, bool):
            raise ValueError(f"{name}: write true or false")
        return str(raw).lower()
    if name == COLOR:
        if raw not in COLORS:
            raise ValueError(f"{name}: {raw!r} is not one of {', '.join(COLORS)}")
        return str(raw)
    assert name == TIMEOUT
    if isinstance(raw, bool) or not isinstance(raw, int | float) or not 0 < raw <= MAX_TIMEOUT_S:
        raise ValueError(f"{name}: write a number of seconds above 0")
    return f"{raw:g}"


def _leaves(table: Mapping[str, object], above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], object]]:
    """Settings with the keys that lead to them: dotted keys are nested tables in TOML."""
    for key, value in table.items():
        keys = (*above, key)
        is_reference = isinstance(value, dict) and len(value) == 1 and next(iter(value)) in KINDS
        if isinstance(value, dict) and not (is_reference and _takes_reference(".".join(keys), value)):
            yield from _leaves(value, keys)
        else:
            yield keys, value


def _takes_reference(name: str, value: Mapping[str, object]) -> bool:
    """In properties such as sasl.oauthbearer.token.command, the last word is not a kind of reference."""
    return is_known(name) and not is_known(f"{name}.{next(iter(value))}")


def _keys(text: str) -> tuple[str, ...]:
    """The dotted key at the start of a line; empty if there is none."""
    keys = []
    position = 0
    while found := _PART.match(text, position):
        part = found[1]
        keys.append(part[1:-1] if part[0] in "\"'" else part)
        position = found.end()
        if text[position : position + 1] != ".":
            return tuple(keys) if text[position : position + 1] in ("=", "]") else ()
        position += 1
    return ()
