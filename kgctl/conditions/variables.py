"""The variables of conditions, with their types: nothing else can be named."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from broker.light_dataclasses import dataclass
from kgctl.conditions.durations import parse_ms
from kgctl.model.groups import STATES, TYPES
from kgctl.model.health import WORDS


class Type(Enum):
    NUMBER = "a number"
    DURATION = "a duration such as 30s"
    WORD = "a word"


@dataclass(frozen=True, slots=True)
class Variable:
    """`words` are the values of a WORD. `has_topics`: the variable may name a topic, as in lag(orders)."""

    name: str
    type: Type
    meaning: str
    words: tuple[str, ...] = ()
    has_topics: bool = False


@dataclass(frozen=True, slots=True, order=True)
class Reference:
    """A variable in a condition."""

    name: str
    topic: str | None = None

    def __str__(self) -> str:
        return self.name if self.topic is None else f"{self.name}({quoted(self.topic)})"


VARIABLES = {
    one.name: one
    for one in (
        Variable("state", Type.WORD, "the state of the group; Dead if the group does not exist", STATES),
        Variable("type", Type.WORD, "the type of the group", TYPES),
        Variable("verdict", Type.WORD, "the verdict of `groups list`", tuple(map(str, reversed(WORDS)))),
        Variable("members", Type.NUMBER, "members; 0 if the group does not exist"),
        Variable("generation", Type.NUMBER, "the generation, or the epoch of a Consumer or Share group"),
        Variable("group_epoch", Type.NUMBER, "the epoch of a Consumer or Share group"),
        Variable("assignment_epoch", Type.NUMBER, "the epoch for which its targets were computed"),
        Variable("reconciling", Type.NUMBER, "members of a group of type Consumer without all of their targets"),
        Variable(
            "lag",
            Type.NUMBER,
            "unread records of all partitions, or of one topic: lag(orders)",
            has_topics=True,
        ),
        Variable("max_lag", Type.NUMBER, "unread records of the worst partition", has_topics=True),
        Variable("partitions", Type.NUMBER, "partitions that a member owns or that have an offset", (), True),
        Variable("unassigned", Type.NUMBER, "partitions of subscribed topics that no member owns", has_topics=True),
        Variable("commit_age", Type.DURATION, "time since the newest commit"),
        Variable("time_lag", Type.DURATION, "age of the oldest unread record"),
    )
}


def quoted(word: str) -> str:
    """The word as conditions write it: in quotes where it needs them."""
    is_plain = bool(word) and all(letter.isascii() and (letter.isalnum() or letter in "._-") for letter in word)
    if is_plain:
        return word
    return f'"{word}"' if "'" in word else f"'{word}'"


def _number(text: str, variable: Variable) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else None


def _duration(text: str, variable: Variable) -> int | None:
    return 0 if text == "0" else parse_ms(text)


def _word(text: str, variable: Variable) -> str | None:
    known = {_folded(word): word for word in variable.words}
    return known.get(_folded(text))


def _folded(word: str) -> str:
    return word.casefold().replace("_", " ").replace("-", " ")


_PARSERS: dict[Type, Callable[[str, Variable], int | str | None]] = {
    Type.NUMBER: _number,
    Type.DURATION: _duration,
    Type.WORD: _word,
}


def value_of(text: str, variable: Variable) -> int | str | None:
    """The value that the text means for this variable, durations in milliseconds; None if it means none."""
    return _PARSERS[variable.type](text, variable)
