"""One option of a client, and how its value is read from Python and from text."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from broker.light_dataclasses import dataclass
from kgctl.client.net.errors import KgctlError

INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1

Kind: TypeAlias = Literal["int", "long", "double", "boolean", "string", "list", "class"]


class BadOption(KgctlError):
    """An option that a client does not have, or a value that it cannot have."""

    is_final = True
    name = "BAD_OPTION"


@dataclass(frozen=True, slots=True)
class Option:
    """`least` and `most` are inclusive; `choices` lists the allowed words, in lower case if case does not matter.

    A `class` is an object, a class or a function, or its place as text: `module:name`. `is_ignored`: other clients have
    the option, and it changes nothing here.
    """

    name: str
    kind: Kind
    default: Any
    doc: str
    least: float | None = None
    most: float | None = None
    choices: tuple[str, ...] = ()
    is_ignored: bool = False

    @property
    def keyword(self) -> str:
        """The name as a keyword argument."""
        return self.name.replace(".", "_")

    def read(self, given: Any) -> Any:
        """The value in the type of the option. Raises BadOption."""
        if given is None:
            if self.default is None:
                return None
            raise BadOption(f"{self.name}: None is not a value of this option")
        value = self._parse(given)
        if isinstance(value, int | float) and not isinstance(value, bool):
            self._check_bounds(value)
        for word in (value,) if isinstance(value, str) else value if isinstance(value, tuple) else ():
            if self.choices and word not in self.choices:
                raise BadOption(f"{self.name}: {word!r} is not one of {', '.join(self.choices)}")
        return value

    def _parse(self, given: Any) -> Any:
        match self.kind:
            case "int" | "long":
                return self._whole_number(given)
            case "double":
                return self._number(given)
            case "boolean":
                return self._flag(given)
            case "string":
                return self._word(given)
            case "list":
                return tuple(given) if isinstance(given, list | tuple) else self._items(given)
            case "class":
                return given.strip() if isinstance(given, str) else given

    def _whole_number(self, given: Any) -> int:
        if isinstance(given, int) and not isinstance(given, bool):
            return given
        text = given.strip() if isinstance(given, str) else ""
        if not (text.isascii() and text.removeprefix("-").isdigit()):
            raise BadOption(f"{self.name}: {given!r} is not a whole number")
        return int(text)

    def _number(self, given: Any) -> float:
        try:
            return float(given)
        except (TypeError, ValueError):
            raise BadOption(f"{self.name}: {given!r} is not a number") from None

    def _flag(self, given: Any) -> bool:
        if isinstance(given, bool):
            return given
        if not isinstance(given, str) or given.strip().lower() not in ("true", "false"):
            raise BadOption(f"{self.name}: {given!r} is neither true nor false")
        return given.strip().lower() == "true"

    def _word(self, given: Any) -> str:
        if isinstance(given, int) and not isinstance(given, bool):  # acks=1
            given = str(given)
        if not isinstance(given, str):
            raise BadOption(f"{self.name}: {given!r} is not text")
        text = given.strip()
        return text.lower() if self.choices and text.lower() in self.choices else text

    def _items(self, given: Any) -> tuple[str, ...]:
        if not isinstance(given, str):
            raise BadOption(f"{self.name}: {given!r} is neither a list nor text with commas")
        return tuple(item.strip() for item in given.split(",") if item.strip())

    def _check_bounds(self, value: float) -> None:
        most = {"int": INT_MAX, "long": LONG_MAX}.get(self.kind) if self.most is None else self.most
        if self.least is not None and value < self.least:
            raise BadOption(f"{self.name}: {value} is too small: it must be at least {self.least}")
        if most is not None and value > most:
            raise BadOption(f"{self.name}: {value} is too large: it may be at most {most}")
