"""A client that several rounds of a command share."""

from __future__ import annotations

from types import TracebackType

from kgctl.client.admin.admin import Admin


class KeptAdmin(Admin):
    """Stays open after the `with` of a command; `close` closes it."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return
