"""Parses command lines as Kafka's tools do (joptsimple without abbreviations): `--name value`, `--name=value`, repeated options."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from broker.light_dataclasses import dataclass, field

# How many values follow an option.
Takes = Literal["nothing", "value", "optional", "number", "whole", "short"]
HELP = ("help", "version")


class UsageError(Exception):
    """The arguments do not fit together; the text is the tool's."""


class BadOption(UsageError):
    """The parser itself refuses an argument. Kafka's tools end with this Java exception."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(f'Exception in thread "main" joptsimple.{kind}: {message}')
        self.message, self.exit_code, self.java = message, 1, f"joptsimple.{kind}: {message}"


@dataclass(frozen=True, slots=True)
class Option:
    """An option of a tool. `only_with`: it is refused unless one of these options is given."""

    name: str
    takes: Takes = "nothing"
    default: str | None = None
    only_with: tuple[str, ...] = ()


@dataclass(slots=True)
class Arguments:
    """What a command line contains; `order` are the names of its options, from left to right."""

    options: dict[str, Option]
    given: dict[str, list[str]] = field(default_factory=dict)
    order: list[str] = field(default_factory=list)

    def has(self, *names: str) -> bool:
        return any(name in self.given for name in names)

    def values(self, name: str) -> list[str]:
        default = self.options[name].default
        found = self.given.get(name) or ([] if default is None else [default])
        for value in found:
            _check_number(self.options[name], value)
        return found

    def value(self, name: str) -> str | None:
        """Raises BadOption if the option is repeated: the tools ask for one value when they use it."""
        found = self.values(name)
        if len(found) > 1:
            about = f"Found multiple arguments for option {name}, but you asked for only one"
            raise BadOption("MultipleArgumentsForOptionException", about)
        return found[0] if found else None

    def number(self, name: str) -> int | None:
        found = self.value(name)
        return None if found is None else int(found)


def parse(options: Iterable[Option], arguments: Sequence[str]) -> Arguments:
    """Raises BadOption. Words that are no options are ignored, as the tools ignore them."""
    found = Arguments({option.name: option for option in options})
    words = list(arguments)
    while words:
        word = words.pop(0)
        if word == "--":
            break
        if _is_option(word):
            _take(found, word, words)
    if not found.has(*HELP):
        _check_available(found)
    return found


def require(arguments: Arguments, *names: str) -> None:
    for name in names:
        if not arguments.has(name):
            raise UsageError(f'Missing required argument "[{name}]"')


def exclude(arguments: Arguments, used: str, invalid: Iterable[str]) -> None:
    for name in invalid:
        if arguments.has(used) and arguments.has(name):
            raise UsageError(f'Option "[{used}]" can\'t be used with option "[{name}]"')


def listed(names: Iterable[str]) -> str:
    """Options as the tools list them in messages."""
    return ", ".join(f"[{name}]" for name in names)


def _is_option(word: str) -> bool:
    return word.startswith("-") and word != "-"


def _take(found: Arguments, word: str, rest: list[str]) -> None:
    name, equals, value = word.lstrip("-").partition("=") if word.startswith("--") else word[1:].partition("=")
    option = found.options.get(name)
    if option is None:
        unknown = name if word.startswith("--") else name[:1]
        raise BadOption("UnrecognizedOptionException", f"{unknown} is not a recognized option")
    values = found.given.setdefault(name, [])
    found.order.append(name)
    if option.takes == "nothing":
        return
    if equals:
        values.append(value)
    elif option.takes == "optional":
        if rest and not _is_option(rest[0]):
            values.append(rest.pop(0))
    elif rest:
        values.append(rest.pop(0))
    else:
        raise BadOption("OptionMissingRequiredArgumentException", f"Option {name} requires an argument")


def _check_available(found: Arguments) -> None:
    for name in found.given:
        needed = found.options[name].only_with
        if needed and not found.has(*needed):
            about = f"Option(s) [{name}] are unavailable given other options on the command line"
            raise BadOption("UnavailableOptionException", about)


def _check_number(option: Option, value: str) -> None:
    bits = {"number": 63, "whole": 31, "short": 15}.get(option.takes)
    if bits is None:
        return
    digits = value[1:] if value[:1] in ("-", "+") else value
    if not (digits.isascii() and digits.isdigit() and -(2**bits) <= int(value) < 2**bits):
        raise BadOption("OptionArgumentConversionException", f"Cannot parse argument '{value}' of option {option.name}")
