"""The tables about this machine and this program: the local broker, what was produced, the kinds of answers."""

from __future__ import annotations

from dataclasses import fields

from kgctl.model.kinds import KindRow
from kgctl.model.local_broker import LocalBrokerRow
from kgctl.model.records import Produced
from kgctl.render.columns import Column, Layout
from kgctl.render.parts import NAME, SENTENCE


def layout_by_fields(row: type) -> Layout:
    """A column for each field of the row."""
    names = (field.name for field in fields(row))
    return Layout(row, tuple(Column(name.upper().replace("_", "-"), name) for name in names))


LOCAL_LAYOUTS: dict[str, Layout] = {
    "local-broker": layout_by_fields(LocalBrokerRow),
    "produced": layout_by_fields(Produced),
    "kinds": Layout(KindRow, (NAME("KIND", "kind", 22), SENTENCE("KEYS", lambda row: ", ".join(row.keys)))),
}
