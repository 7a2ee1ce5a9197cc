"""The lines about groups in the broker's log."""

from __future__ import annotations

import logging

import pytest

from broker.cores.groups.events import Cause, EventType, GroupEvent
from broker.protocol.messages.leave_group import LeaveGroupRequest
from broker.server.group_lines import line_of
from tests.harness.requests import join_alone
from tests.harness.wire_client import WireClient


def test_each_group_event_is_a_line_of_the_log(client: WireClient, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "broker.groups")

    joined = join_alone(client, "g")
    client.ask(LeaveGroupRequest(group_id="g", member_id=joined.member_id), 2)

    lines = [record.getMessage() for record in caplog.records if record.name == "broker.groups"]
    assert lines[0] == "group 'g' rebalance_started, generation 0, 1 member, 1 joined, cause: member joined"
    assert any(line.startswith("group 'g' stable, generation 1, 1 member,") for line in lines)
    assert lines[-1].startswith("group 'g' empty, generation 2, 0 members, 1 left, cause: member left")


def test_a_line_names_why_members_left_if_it_is_not_the_cause_of_the_rebalance() -> None:
    causes = (Cause.MEMBER_LEFT, Cause.REBALANCE_TIMED_OUT, Cause.REBALANCE_TIMED_OUT)
    timed_out = GroupEvent(
        "g",
        EventType.STABLE,
        Cause.MEMBER_LEFT,
        "",
        3,
        0,
        2,
        left=("a", "b", "c"),
        left_count=3,
        left_causes=causes,
        absent=("b", "c", "d"),
        absent_count=3,
    )
    assert line_of(timed_out) == (
        "group 'g' stable, generation 3, 2 members, 3 left (1 member left, 2 rebalance timed out), "
        "3 absent when the rebalance timeout had passed, cause: member left"
    )
    left = GroupEvent("g", EventType.STABLE, Cause.MEMBER_LEFT, "", 3, 0, 2, left_count=1, left_causes=causes[:1])
    assert line_of(left) == "group 'g' stable, generation 3, 2 members, 1 left, cause: member left"


@pytest.mark.parametrize("cause", Cause, ids=lambda cause: cause.value)
def test_a_line_names_each_cause(cause: Cause) -> None:
    event = GroupEvent("g", EventType.EMPTY, cause, "", 3, 0, 0)
    assert line_of(event) == f"group 'g' empty, generation 3, 0 members, cause: {cause.value}"


def test_names_from_clients_cannot_start_a_new_line_and_are_truncated() -> None:
    event = GroupEvent("a\nb", EventType.STABLE, Cause.MEMBER_LEFT, "x\r\ny" + "z" * 300, 3, 0, 2)

    line = line_of(event)

    assert line.startswith("group 'a\\nb' stable, generation 3, 2 members, cause: member left, reason: 'x\\r\\nyz")
    assert line.endswith("z...'")
    assert len(line) < 400
