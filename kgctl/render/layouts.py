"""The table of each kind of row. Headers, order and least widths are those of Kafka's own tools where they have the table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any

from kgctl.render.columns import Layout, layout_by_fields, layout_by_values

# Where the tables are, and the first words of their kinds: a kind is searched there first, so that the others are not loaded.
_PLACES = {
    "group_layouts:GROUP_LAYOUTS": ("group", "groups"),
    "journal_layouts:JOURNAL_LAYOUTS": ("journal", "plan"),
    "change_layouts:CHANGE_LAYOUTS": ("group", "offset", "member"),
    "topic_layouts:TOPIC_LAYOUTS": ("topic", "topics"),
    "pipeline_layouts:PIPELINE_LAYOUTS": ("pipeline", "broker", "rescued"),
    "bench_layouts:BENCH_LAYOUTS": ("bench",),
    "lab_layouts:LAB_LAYOUTS": ("lab",),
    "local_layouts:LOCAL_LAYOUTS": ("local", "produced", "kinds"),
    "client_layouts:CLIENT_LAYOUTS": ("client", "clients"),
    "peek_layout:PEEK_LAYOUTS": ("group",),
    "resource_layouts:RESOURCE_LAYOUTS": ("config", "configs", "quota", "quotas", "cluster", "record", "log", "topic"),
    "security_layouts:SECURITY_LAYOUTS": ("acl", "acls", "user", "users", "context", "contexts"),
    "store_layouts:STORE_LAYOUTS": ("store",),
    "transaction_layouts:TRANSACTION_LAYOUTS": ("transaction", "transactions", "hanging", "producers"),
    "watch_layouts:WATCH_LAYOUTS": ("group", "events", "doctor", "cluster", "ui"),
}


class _Layouts(Mapping[str, Layout]):
    """All layouts by kind; a module with layouts is loaded when a kind may be in it."""

    def __getitem__(self, kind: str) -> Layout:
        word = kind.partition("-")[0]
        for place in sorted(_PLACES, key=lambda place: word not in _PLACES[place]):
            if kind in (found := _at(place)):
                return found[kind]
        raise KeyError(kind)

    def __iter__(self) -> Iterator[str]:
        for place in _PLACES:
            yield from _at(place)

    def __len__(self) -> int:
        return sum(map(len, map(_at, _PLACES)))


LAYOUTS = _Layouts()


def layout_of(kind: str, rows: Sequence[Any], row: type | None = None) -> Layout:
    """The layout of the kind; for a kind without one, the fields of `row`, or of the rows, in order."""
    if kind in LAYOUTS:
        return LAYOUTS[kind]
    if rows:
        return layout_by_values(rows)
    return Layout(None, ()) if row is None else layout_by_fields(row)


def _at(place: str) -> Mapping[str, Layout]:
    module, _, name = place.partition(":")
    found: Mapping[str, Layout] = getattr(import_module(f"kgctl.render.{module}"), name)
    return found
