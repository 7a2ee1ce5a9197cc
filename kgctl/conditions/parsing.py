"""The parser of conditions, by recursive descent.

condition  = conjunct { "or" conjunct }
conjunct   = part { "and" part }
part       = "not" part | "(" condition ")" | comparison
comparison = variable [ "(" topic ")" ] operator value
"""

from __future__ import annotations

from collections.abc import Callable

from kgctl.conditions.errors import BadCondition
from kgctl.conditions.syntax import And, Comparison, Condition, Not, Or
from kgctl.conditions.tokens import KEYWORDS, OPERATORS, Kind, Token, tokens_of
from kgctl.conditions.variables import VARIABLES, Reference, Type, Variable, value_of

MOST_NESTED = 50


def parse(text: str) -> Condition:
    """Raises BadCondition, which names the column."""
    return _Parser(text).parse()


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = tokens_of(text)
        self._place = 0
        self._depth = 0

    def parse(self) -> Condition:
        if self._next().kind is Kind.END:
            raise self._error("the condition is empty", self._next())
        found = self._condition()
        if self._next().kind is Kind.CLOSE:
            raise self._error("no opening parenthesis for this", self._next())
        if self._next().kind is not Kind.END:
            raise self._error(f"expected and, or, or the end, not {self._next().text!r}", self._next())
        return found

    def _next(self) -> Token:
        return self._tokens[self._place]

    def _take(self) -> Token:
        token = self._next()
        self._place += token.kind is not Kind.END
        return token

    def _condition(self) -> Condition:
        return self._joined("or", self._conjunct, Or)

    def _conjunct(self) -> Condition:
        return self._joined("and", self._part, And)

    def _joined(
        self, keyword: str, parse: Callable[[], Condition], make: Callable[[tuple[Condition, ...]], Condition]
    ) -> Condition:
        parts = [parse()]
        while self._next().is_keyword(keyword):
            self._take()
            parts.append(parse())
        return parts[0] if len(parts) == 1 else make(tuple(parts))

    def _part(self) -> Condition:
        token = self._next()
        if not token.is_keyword("not") and token.kind is not Kind.OPEN:
            return self._comparison()
        self._take()
        self._depth += 1
        if self._depth > MOST_NESTED:
            raise self._error(f"more than {MOST_NESTED} levels", token)
        found = Not(self._part()) if token.kind is Kind.WORD else self._in_parentheses(token)
        self._depth -= 1
        return found

    def _in_parentheses(self, opening: Token) -> Condition:
        found = self._condition()
        if self._next().kind is not Kind.CLOSE:
            raise self._error("no closing parenthesis for this", opening)
        self._take()
        return found

    def _comparison(self) -> Comparison:
        variable, reference = self._reference()
        token = self._take()
        if token.kind is not Kind.OPERATOR:
            raise self._error(f"expected one of {' '.join(OPERATORS)} after {reference}", token)
        if variable.type is Type.WORD and token.text not in ("==", "!="):
            raise self._error(f"{reference} is a word: compare it with == or !=", token)
        return Comparison(reference, token.text, self._value(variable))

    def _reference(self) -> tuple[Variable, Reference]:
        token = self._take()
        variable = VARIABLES.get(token.text) if token.kind is Kind.WORD else None
        if variable is None:
            known = ", ".join(sorted(VARIABLES))
            is_name = token.kind is Kind.WORD and token.text.lower() not in KEYWORDS
            raise self._error(
                f"unknown variable {token.text!r}; known are {known}" if is_name else f"expected a variable: {known}",
                token,
            )
        if self._next().kind is not Kind.OPEN:
            return variable, Reference(variable.name)
        opening = self._take()
        if not variable.has_topics:
            raise self._error(f"{variable.name} takes no topic", opening)
        topic = self._take()
        if topic.kind not in (Kind.WORD, Kind.QUOTED) or not topic.text:
            raise self._error(f"expected a topic, as in {variable.name}(orders)", topic)
        if self._next().kind is not Kind.CLOSE:
            raise self._error("no closing parenthesis for this", opening)
        self._take()
        return variable, Reference(variable.name, topic.text)

    def _value(self, variable: Variable) -> int | str:
        token = self._take()
        found = value_of(token.text, variable) if token.kind in (Kind.WORD, Kind.QUOTED) else None
        if found is None:
            wanted = f"one of {', '.join(variable.words)}" if variable.words else variable.type.value
            raise self._error(f"expected {wanted}" + (f", not {token.text!r}" if token.text else ""), token)
        return found

    def _error(self, reason: str, token: Token) -> BadCondition:
        return BadCondition(reason, self._text, token.column)
