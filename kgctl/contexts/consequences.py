"""What follows from a context's read-only and confirm."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kgctl.client.net.errors import KgctlError
from kgctl.client.net.read_only import ReadOnly
from kgctl.contexts.names import READ_ONLY

if TYPE_CHECKING:
    from kgctl.contexts.target import Target


class NotConfirmed(KgctlError):
    """The name of what would change was not typed, or not as it is."""

    name = "NOT_CONFIRMED"


def read_only_error(target: Target, what: str) -> ReadOnly:
    return ReadOnly(f"{what} is refused: context {target.name!r} is read-only ({target.values[READ_ONLY].source})")
