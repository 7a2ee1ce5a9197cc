"""The reads of contexts: their list, which asks no cluster, and the test of one."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping

from broker.light_dataclasses import dataclass, field
from kgctl.client.admin.admin import Admin
from kgctl.contexts.book import existing, open_book
from kgctl.contexts.names import BadContext
from kgctl.contexts.rows import context_rows, setting_rows
from kgctl.contexts.target import Given, choose, of_context
from kgctl.model.contexts import FAILED, ContextRow, SettingRow, StepRow
from kgctl.tui.feed.read import Read


@dataclass(frozen=True, slots=True)
class ContextsNow:
    """`settings` by context, without secrets. `note` says which file is ignored, or why contexts cannot be read."""

    rows: tuple[ContextRow, ...] = ()
    settings: Mapping[str, tuple[SettingRow, ...]] = field(default_factory=dict)
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Contexts(Read[ContextsNow]):
    """The contexts of this machine, as their files say now. No secret is resolved."""

    @property
    def lane(self) -> str:
        return "files"

    def run(self, admin: Admin) -> ContextsNow:
        try:
            book = open_book(os.environ)
        except BadContext as error:
            return ContextsNow(note=str(error))
        rows = tuple(row for row in context_rows(book) if not row.shadowed)
        settings = {
            row.context: tuple(setting_rows(of_context(context, "")))
            for row in rows
            if (context := book.find(row.context)) is not None
        }
        return ContextsNow(rows, settings, book.note)


@dataclass(frozen=True, slots=True)
class ContextTested:
    """The steps of a connection, up to the first that failed at every address."""

    steps: tuple[StepRow, ...]
    wall_ms: int

    @property
    def failed(self) -> StepRow | None:
        """The step that ends the test; None if the cluster can be reached."""
        return self.steps[-1] if self.steps and self.steps[-1].status == FAILED else None

    @property
    def took_ms(self) -> float:
        return sum(step.duration_ms or 0.0 for step in self.steps)


@dataclass(frozen=True, slots=True)
class ContextTest(Read[ContextTested]):
    """The test of `kgctl context test`: secrets are resolved, and a connection is opened step by step."""

    context: str

    @property
    def lane(self) -> str:
        return f"test of {self.context}"

    def run(self, admin: Admin) -> ContextTested:
        from kgctl.contexts.diagnosis import diagnose

        existing(self.context)
        steps = diagnose(choose(Given(context=self.context)), None)
        return ContextTested(tuple(steps), time.time_ns() // 1_000_000)
