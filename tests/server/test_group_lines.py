"""What the broker's own log tells of groups."""

from __future__ import annotations

import logging

import pytest

from broker.coordinator.group_events import GroupEvent, Happening
from broker.coordinator.story import Cause
from broker.protocol.messages.leave_group import LeaveGroupRequest
from broker.server.group_lines import line_of
from tests.server.requests import join_alone
from tests.server.wire_client import WireClient


def test_each_event_of_a_group_is_a_line_of_the_log(client: WireClient, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "broker.groups")

    joined = join_alone(client, "g")
    client.ask(LeaveGroupRequest(group_id="g", member_id=joined.member_id), 2)

    lines = [record.getMessage() for record in caplog.records if record.name == "broker.groups"]
    assert lines[0] == "group 'g' rebalance_started, generation 0, 1 member, 1 joined, cause: member joined"
    assert any(line.startswith("group 'g' stable, generation 1, 1 member,") for line in lines)
    assert lines[-1].startswith("group 'g' empty, generation 2, 0 members, 1 left, cause: member left")


def test_what_clients_name_cannot_begin_a_line_of_its_own_and_is_cut() -> None:
    event = GroupEvent("a\nb", Happening.STABLE, Cause.MEMBER_LEFT, "x\r\ny" + "z" * 300, 3, 0, 2)

    line = line_of(event)

    assert line.startswith("group 'a\\nb' stable, generation 3, 2 members, cause: member left, reason: 'x\\r\\nyz")
    assert line.endswith("z...'")
    assert len(line) < 400
