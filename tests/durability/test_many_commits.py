"""A start does not read committed offsets: they are loaded for each group at its first request."""

from __future__ import annotations

from pathlib import Path

from bench import recovery
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.list_groups import ListGroupsRequest
from broker.protocol.messages.offset_commit import OffsetCommitRequest
from tests.harness.running import RunningBroker

GROUPS = 150


def unloaded(running: RunningBroker) -> int:
    """The number of groups whose offsets are only in the store."""
    return running.run(lambda: len(running.broker.groups.coordinator.unloaded_groups()))


def test_only_requested_groups_are_loaded(tmp_path: Path) -> None:
    recovery.fill(tmp_path, GROUPS)
    with RunningBroker(tmp_path) as running:
        assert unloaded(running) == GROUPS
        with running.client() as client:
            assert len(client.ask(ListGroupsRequest()).groups) == GROUPS
            assert unloaded(running) == GROUPS
            recovery.fetch_one(running.address, 7)
            assert unloaded(running) == GROUPS - 1
            recovery.fetch_one(running.address, 7)
            assert unloaded(running) == GROUPS - 1
            at = OffsetCommitRequest.Partition(partition_index=3, committed_offset=8, committed_metadata="")
            topic = OffsetCommitRequest.Topic(name=recovery.TOPIC, partitions=[at])
            commit = OffsetCommitRequest(
                group_id="bench-group-00008", generation_id_or_member_epoch=-1, member_id="", topics=[topic]
            )
            (answer,) = client.ask(commit, 8).topics
            assert answer.partitions[0].error_code == ErrorCode.NONE
            # The commit loaded the offsets that it did not name.
            assert unloaded(running) == GROUPS - 2
            recovery.fetch_one(running.address, 8)
            assert unloaded(running) == GROUPS - 2
