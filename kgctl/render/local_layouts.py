"""The tables about this machine and this program: the local broker, what was produced, the kinds of answers."""

from __future__ import annotations

from broker.light_dataclasses import replace
from kgctl.model.kinds import KindRow
from kgctl.model.local_broker import LocalBrokerRow
from kgctl.model.records import Produced
from kgctl.render.columns import Layout, layout_by_fields
from kgctl.render.parts import NAME, SENTENCE

LOCAL_LAYOUTS: dict[str, Layout] = {
    "local-broker": replace(layout_by_fields(LocalBrokerRow), name="address"),
    "produced": layout_by_fields(Produced),
    "kinds": Layout(KindRow, (NAME("KIND", "kind", 22), SENTENCE("KEYS", lambda row: ", ".join(row.keys)))),
}
