"""Words, operators and parentheses of a condition, with their columns."""

from __future__ import annotations

import re
from enum import Enum

from broker.light_named_tuples import NamedTuple
from kgctl.conditions.errors import BadCondition

MOST_LETTERS = 2000
OPERATORS = ("==", "!=", "<=", ">=", "<", ">")
KEYWORDS = ("and", "or", "not")
_TOKEN = re.compile(r"(?P<word>[A-Za-z0-9_.-]+)|(?P<operator>[=!<>]=|<|>)|(?P<open>\()|(?P<close>\))", re.ASCII)
_MEANT = {"=": "==", "&": "and", "|": "or", "!": "not"}


class Kind(Enum):
    WORD = "word"
    QUOTED = "quoted"
    OPERATOR = "operator"
    OPEN = "open"
    CLOSE = "close"
    END = "end"


class Token(NamedTuple):
    kind: Kind
    text: str
    column: int

    def is_keyword(self, keyword: str) -> bool:
        return self.kind is Kind.WORD and self.text.lower() == keyword


def tokens_of(text: str) -> list[Token]:
    """The tokens of the text, an END behind the last one. Raises BadCondition."""
    if len(text) > MOST_LETTERS:
        raise BadCondition(f"the condition is longer than {MOST_LETTERS} characters", text[:60], 1)
    found, place = [], 0
    while place < len(text):
        if text[place].isspace():
            place += 1
            continue
        token = _quoted(text, place) if text[place] in "'\"" else _plain(text, place)
        found.append(token)
        place += len(token.text) + (2 if token.kind is Kind.QUOTED else 0)
    return [*found, Token(Kind.END, "", len(text) + 1)]


def _quoted(text: str, place: int) -> Token:
    end = text.find(text[place], place + 1)
    if end < 0:
        raise BadCondition(f"no closing {text[place]}", text, place + 1)
    return Token(Kind.QUOTED, text[place + 1 : end], place + 1)


def _plain(text: str, place: int) -> Token:
    found = _TOKEN.match(text, place)
    if found is not None and found.lastgroup is not None:
        return Token(Kind(found.lastgroup), found[0], place + 1)
    meant = _MEANT.get(text[place])
    hint = f"write {meant}" if meant else f"unexpected {text[place]!r}"
    raise BadCondition(hint, text, place + 1)
