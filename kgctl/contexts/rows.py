"""Contexts and their settings as rows for people. No secret is resolved or shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.secret_names import is_secret
from kgctl.contexts.book import PROJECT, USER, Book
from kgctl.contexts.names import BOOTSTRAP, COLOR, CONFIRM, READ_ONLY, TIMEOUT
from kgctl.contexts.values import shown
from kgctl.model.contexts import ContextRow, SettingRow

if TYPE_CHECKING:
    from kgctl.contexts.context_file import Context
    from kgctl.contexts.target import Target


def context_rows(book: Book) -> list[ContextRow]:
    """All contexts, by name; secrets are hidden."""
    found = [
        _row(context, book, kind)
        for file, kind in ((book.project, PROJECT), (book.user, USER))
        if file is not None
        for context in file.contexts.values()
    ]
    return sorted(found, key=lambda row: (row.context, row.shadowed))


def _row(context: Context, book: Book, defined_in: str) -> ContextRow:
    def text(name: str) -> str | None:
        value = context.settings.get(name)
        return None if value is None else shown(name, value, is_secret=is_secret(name))

    counts = book.find(context.name) is context
    timeout = text(TIMEOUT)
    return ContextRow(
        context=context.name,
        current=counts and book.choice == context.name,
        bootstrap=text(BOOTSTRAP),
        protocol=text("security.protocol") or "PLAINTEXT",
        mechanism=text("sasl.mechanism") or text("sasl.mechanisms"),
        read_only=text(READ_ONLY) == "true",
        confirm=text(CONFIRM) == "true",
        color=text(COLOR),
        timeout_s=None if timeout is None else float(timeout),
        defined_in=defined_in,
        file=str(context.path),
        shadowed=not counts,
    )


def setting_rows(target: Target, timeout: float | None = None) -> list[SettingRow]:
    """What a connection to the target uses, with where each value comes from; `timeout` is that of an option."""
    rows = [
        SettingRow(target.name, name, shown(name, one.value, is_secret=is_secret(name)), one.source)
        for name, one in target.values.items()
    ]
    defaults = {
        "security.protocol": "PLAINTEXT",
        "client.id": "kgctl",
        TIMEOUT: "30",
        READ_ONLY: "false",
        CONFIRM: "false",
    }
    rows += [
        SettingRow(target.name, name, text, "default") for name, text in defaults.items() if name not in target.values
    ]
    if timeout is not None:
        rows = [one for one in rows if one.setting != TIMEOUT]
        rows.append(SettingRow(target.name, TIMEOUT, f"{timeout:g}", "--timeout"))
    order = [BOOTSTRAP, "security.protocol"]
    own = [READ_ONLY, CONFIRM, COLOR, TIMEOUT]
    return sorted(
        rows,
        key=lambda row: (
            order.index(row.setting) if row.setting in order else len(order) + (row.setting in own),
            row.setting,
        ),
    )
