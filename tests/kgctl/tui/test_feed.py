"""The feed of a cluster: the times of its snapshots."""

from __future__ import annotations

import time

from broker.local import LocalBroker
from kgctl.client.admin.admin import Admin
from kgctl.client.net.bootstrap import parse
from kgctl.client.net.connector import ConnectionSettings
from kgctl.model.history import GroupEventRow
from kgctl.tui.feed.groups import OneGroup


class Slow(Admin):
    """Records when the history is requested."""

    asked_at_s = 0.0

    def new_events(self, group: str, *, whole_history: bool) -> tuple[GroupEventRow, ...]:
        self.asked_at_s = time.monotonic()
        return super().new_events(group, whole_history=whole_history)


def test_a_group_snapshot_has_the_time_of_the_description() -> None:
    with LocalBroker() as broker, Slow(ConnectionSettings(parse(broker.bootstrap_servers))) as admin:
        found = OneGroup("g", whole_history=True).run(admin)
    assert found.group.error is not None
    assert found.events == ()
    assert found.at_s <= admin.asked_at_s
