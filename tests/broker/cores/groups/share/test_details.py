"""DescribeGroupDetails and TriggerRebalance of share groups."""

from __future__ import annotations

from typing import Any

from broker.protocol.errors import ErrorCode
from broker.protocol.messages.describe_group_details import DescribeGroupDetailsRequest
from broker.protocol.messages.trigger_rebalance import TriggerRebalanceRequest
from tests.broker.cores.groups.share.clients import Client, found, settle
from tests.broker.cores.groups.world import World


def details(world: World) -> Any:
    (row,) = world.answer(DescribeGroupDetailsRequest(groups=["g"], include_commits=True), 2).groups
    return row


def test_details_have_epochs_timeouts_and_what_a_heartbeat_still_brings() -> None:
    world = World()
    first, second = Client(world, "m1"), Client(world, "m2")
    settle(first)
    joined_ms = details(world).state_since_ms
    world.let_pass(1_500)
    second.beat()
    row = details(world)
    assert (row.error_code, row.group_state, row.protocol_type, row.protocol) == (0, "Stable", "share", "simple")
    assert (row.generation_id, row.state_since_ms) == (found(world).generation, joined_ms)
    members = {one.member_id: (one.phase, one.heartbeat_age_ms, one.rebalance_timeout_ms) for one in row.members}
    assert members == {"m1": ("reconciling", 1_500, -1), "m2": ("stable", 0, -1)}
    assert {one.session_timeout_ms for one in row.members} == {45_000}
    first.beat()
    assert {one.phase for one in details(world).members} == {"stable"}
    for client in (first, second):
        client.leave()
    row = details(world)
    assert (row.group_state, row.members, row.state_since_ms) == ("Empty", [], joined_ms + 1_500)


def test_a_share_group_has_nothing_to_rebalance() -> None:
    world = World()
    settle(Client(world, "m1"))
    epoch = found(world).generation
    asked = TriggerRebalanceRequest.Group(group_id="g", reason=None)
    (row,) = world.answer(TriggerRebalanceRequest(groups=[asked]), 0).groups
    assert (row.error_code, "without rebalances" in row.error_message) == (ErrorCode.INVALID_REQUEST, True)
    assert found(world).generation == epoch
