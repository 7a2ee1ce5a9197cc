"""The feed of a cluster: of which moment its looks are."""

from __future__ import annotations

import time

from broker.local import LocalBroker
from kgctl.client.admin.admin import Admin
from kgctl.client.net.bootstrap import parse
from kgctl.client.net.connector import ConnectionSettings
from kgctl.model.history import GroupEventRow
from kgctl.tui.feed import look_at


class Slow(Admin):
    """Notes when it is asked for a story: as long as that takes, it is no part of the look's moment."""

    asked_at_s = 0.0

    def new_events(self, group: str, *, anew: bool) -> tuple[GroupEventRow, ...]:
        self.asked_at_s = time.monotonic()
        return super().new_events(group, anew=anew)


def test_a_look_at_a_group_is_of_the_moment_of_its_description() -> None:
    with LocalBroker() as broker, Slow(ConnectionSettings(parse(broker.bootstrap_servers))) as admin:
        look = look_at(admin, "g", anew=True)
    assert look.group.error is not None
    assert look.events == ()
    assert look.at_s <= admin.asked_at_s
