"""What every tool gets from kgctl, and what it gives back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from broker.light_dataclasses import dataclass
from kgctl.client.net.errors import KgctlError
from kgctl.client.net.steps import Steps
from kgctl.compat.java_errors import JavaError, java_error

if TYPE_CHECKING:
    from kgctl.client.admin.admin import Admin

T = TypeVar("T")
DIALECTS = {"3.9": "3.9.1", "4.1": "4.1.0"}
USAGE = 1


class Ended(NamedTuple):
    """The exit code that says what happened, and the one of Kafka's tool."""

    code: int
    kafkas: int


@dataclass(frozen=True, slots=True)
class Host:
    """`connect` takes the servers, the properties file and the time limit in seconds; `may_change` the names of what changes.

    `may_change` raises a KgctlError where the context is read-only or wants a confirmation. `read_line` reads a line of stdin,
    and returns an empty text at its end.
    """

    dialect: str
    connect: Callable[[str | None, str | None, float | None], Admin]
    may_change: Callable[[Sequence[str]], None]
    out: Callable[[str], None]
    err: Callable[[str], None]
    read_line: Callable[[], str]


@dataclass(frozen=True, slots=True)
class Session:
    """A tool at work on a cluster."""

    host: Host
    admin: Admin

    def run(self, steps: Steps[T], call: str) -> T:
        """Raises JavaError, as a future does; `call` is the Java client's name for the request."""
        try:
            return self.admin.run(steps)
        except KgctlError as error:
            raise java_error(error, call=call).within() from error

    def out(self, text: str) -> None:
        self.host.out(text)

    def err(self, text: str) -> None:
        self.host.err(text)


def ended_by(errors: Iterable[JavaError], kafkas: int = 0) -> Ended:
    """The code of the failures: the common one of all, else the general one."""
    codes = {error.exit_code for error in errors}
    return Ended(codes.pop() if len(codes) == 1 else int(bool(codes)), kafkas)


def columns(*widths: int) -> Callable[..., str]:
    """Cells padded to these widths and separated by blanks; cells beyond the widths are not padded."""

    def row(*cells: object) -> str:
        texts = [str(cell) for cell in cells]
        padded = [text.ljust(width) for text, width in zip(texts, widths, strict=False)]
        return " ".join(padded + texts[len(widths) :])

    return row
