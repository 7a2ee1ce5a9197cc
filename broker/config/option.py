"""Option: the name, type, default and bounds of one broker option, and how its value is read and written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Union

from broker.light_dataclasses import dataclass, field

if TYPE_CHECKING:
    from broker.security.secret import Secret

INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1

Kind = Literal["int", "long", "double", "boolean", "string", "list", "password"]
Value = Union[int, float, bool, str, tuple[str, ...], "Secret", None]
# What stands for the value of a password wherever values are shown.
HIDDEN = "[hidden]"


class ConfigError(ValueError):
    """An option with an invalid name or value. The text is one line for the user."""


@dataclass(frozen=True, slots=True)
class Option:
    """One row of the table. `least` and `most` are inclusive bounds; `choices` lists the allowed values, `any_case` in any case.

    `per_listener`: `listener.name.<name>.<option>` sets it for one listener. `per_mechanism`:
    `listener.name.<name>.<mechanism>.<option>` sets it for one SASL mechanism of a listener.
    """

    name: str
    kind: Kind
    default: Value
    doc: str
    least: float | None = None
    most: float | None = None
    choices: tuple[str, ...] = ()
    any_case: bool = False
    per_listener: bool = False
    per_mechanism: bool = False

    @property
    def field_name(self) -> str:
        return self.name.replace(".", "_")

    def parse(self, text: str) -> Value:
        """Parse and check a value. Raises ConfigError."""
        text = text.strip()
        value = self._parse_kind(text.lower() if self.any_case else text)
        if isinstance(value, int | float) and not isinstance(value, bool):
            low = self.least if self.least is not None else -float("inf")
            high = self.most if self.most is not None else float("inf")
            if not low <= value <= high:
                raise ConfigError(f"{self.name}={text}: must be {self._range()}")
        wrong = [word for word in _words(value) if self.choices and word not in self.choices]
        if wrong:
            raise ConfigError(f"{self.name}={text}: {wrong[0]!r} is not one of {', '.join(self.choices)}")
        return value

    def _parse_kind(self, text: str) -> Value:
        match self.kind:
            case "int" | "long":
                sign, digits = text[:1] in ("+", "-"), text.lstrip("+-")
                if not (digits.isascii() and digits.isdigit() and len(text) - len(digits) == sign):
                    raise ConfigError(f"{self.name}={text}: not a whole number")
                return int(text)
            case "double":
                try:
                    return float(text)
                except ValueError:
                    raise ConfigError(f"{self.name}={text}: not a number") from None
            case "boolean":
                if text.lower() not in ("true", "false"):
                    raise ConfigError(f"{self.name}={text}: must be true or false")
                return text.lower() == "true"
            case "list":
                return tuple(word.strip() for word in text.split(",")) if text else ()
            case "string":
                return text
            case "password":
                from broker.security.secret import Secret

                return Secret(text)

    def _range(self) -> str:
        if self.least is not None and self.most is not None and self.most < INT_MAX:
            return f"from {self.least} to {self.most}"
        limit = self.most if self.most is not None else LONG_MAX
        return f"at least {self.least} and at most {limit}" if self.least is not None else f"at most {limit}"


def _words(value: Value) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    return value if isinstance(value, tuple) else ()


def spell(value: Value) -> str | None:
    """The value as Kafka writes it in DescribeConfigs; None if it is absent."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ",".join(value)
    return str(value) if isinstance(value, str | int | float) else HIDDEN


def _option(name: str, kind: Kind, default: Value, doc: str, **bounds: Any) -> Any:
    if kind in ("int", "long"):
        top = INT_MAX if kind == "int" else LONG_MAX
        bounds = {"least": -top - 1, "most": top} | bounds
    return field(default=default, metadata={"option": Option(name, kind, default, doc, **bounds)})


def integer(name: str, default: int | None, doc: str, **bounds: Any) -> Any:
    return _option(name, "int", default, doc, **bounds)


def long(name: str, default: int | None, doc: str, **bounds: Any) -> Any:
    return _option(name, "long", default, doc, **bounds)


def double(name: str, default: float, doc: str, **bounds: Any) -> Any:
    return _option(name, "double", default, doc, **bounds)


def boolean(name: str, default: bool, doc: str, **bounds: Any) -> Any:
    return _option(name, "boolean", default, doc, **bounds)


def text(name: str, default: str | None, doc: str, **bounds: Any) -> Any:
    return _option(name, "string", default, doc, **bounds)


def words(name: str, default: tuple[str, ...], doc: str, **bounds: Any) -> Any:
    return _option(name, "list", default, doc, **bounds)


def password(name: str, doc: str, **bounds: Any) -> Any:
    """An option whose value is never shown: not in logs, errors, DescribeConfigs or --help."""
    return _option(name, "password", None, doc, **bounds)
