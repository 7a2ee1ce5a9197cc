"""Regular expressions that clients send, matched by RE2 in linear time: a client cannot stall the broker with a pattern that backtracks.

Kafka uses RE2J, the same syntax in Java. https://github.com/google/re2/wiki/Syntax
"""

from __future__ import annotations

# What RE2J refuses and RE2 accepts: bytes, and two groups with the same name. The first two alternatives only skip.
_REFUSED = r"(?s)\\Q.*?(?:\\E|\Z)|\\[^C]|(?P<byte>\\C)|\(\?P?<(?P<name>\w+)>"

# The memory of a compiled pattern: some 15,000 instructions. Kafka has no limit, but the time to match grows with the size.
_PROGRAM_BYTES = 1 << 18
# That of the states that it remembers, which make it fast.
_STATE_BYTES = 8 << 20


class InvalidPattern(ValueError):
    """The pattern is not valid; the message says why."""


class Pattern:
    """A compiled pattern."""

    __slots__ = ("_fullmatch",)

    def __init__(self, text: str) -> None:
        """Raises InvalidPattern."""
        import re2  # 10 ms, and needless for most brokers

        _check(text)
        options = re2.Options()
        options.log_errors = False
        # What groups have matched is of no interest; finding it takes several times as long.
        options.never_capture = True
        options.max_mem = _PROGRAM_BYTES
        try:
            re2.compile(text, options)
            options.max_mem = _STATE_BYTES
            self._fullmatch = re2.compile(text, options).fullmatch
        except re2.error as error:
            raise InvalidPattern(error.args[0].decode(errors="replace")) from None

    def matches(self, text: str) -> bool:
        """Whether the whole text matches."""
        return self._fullmatch(text) is not None


def _check(text: str) -> None:
    import re

    names = set()
    for found in re.finditer(_REFUSED, text):
        name = found["name"]
        if found["byte"] or name in names:
            raise InvalidPattern(
                f"{found[0]} is not supported" if found["byte"] else f"two groups have the name {name}"
            )
        if name:
            names.add(name)
