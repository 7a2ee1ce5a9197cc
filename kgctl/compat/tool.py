"""What every tool gets from kgctl, and what it gives back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from broker.light_dataclasses import dataclass
from broker.light_named_tuples import NamedTuple
from kgctl.client.net.errors import KgctlError
from kgctl.client.net.steps import Steps
from kgctl.compat.java_errors import JavaError, java_error

if TYPE_CHECKING:
    from kgctl.client.admin.admin import Admin
    from kgctl.journal.keeping import Keeper
    from kgctl.journal.results import Outcome
    from kgctl.model.items import Item
    from kgctl.model.plans import GroupPlan, StoredGroup

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
    and returns an empty text at its end. `keeper` keeps changes in the journal; call it after `connect`.
    """

    dialect: str
    connect: Callable[[str | None, str | None, float | None], Admin]
    may_change: Callable[[Sequence[str]], None]
    out: Callable[[str], None]
    err: Callable[[str], None]
    read_line: Callable[[], str]
    keeper: Callable[[], Keeper]


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

    def change(
        self,
        verb: str,
        items: Callable[[], Sequence[Item]],
        act: Callable[[], T],
        outcomes: Callable[[T], Sequence[Outcome]],
        call: str,
    ) -> T:
        """The result of `act`, which changes these items, with an entry in the journal. Raises JavaError and CannotKeep."""
        return self._kept(lambda: self.host.keeper().change(self.admin, verb, items, act, outcomes), call)

    def change_groups(
        self,
        verb: str,
        names: Sequence[str],
        plans: Callable[[Mapping[str, StoredGroup]], Sequence[GroupPlan]],
        act: Callable[[], T],
        outcomes: Callable[[T], Sequence[Outcome]],
        call: str,
    ) -> T:
        """The same for groups."""
        keeper = self.host.keeper()
        return self._kept(
            lambda: keeper.change_groups(self.admin, verb, names, plans, act, outcomes, needs_states=False), call
        )

    def _kept(self, act: Callable[[], T], call: str) -> T:
        from kgctl.journal.files import CannotKeep

        try:
            return act()
        except CannotKeep:
            raise
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
