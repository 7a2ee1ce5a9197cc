"""DescribeBroker: what the broker counts about itself."""

from __future__ import annotations

import random

import pytest

from broker.protocol.latency_buckets import BUCKETS, limits
from broker.protocol.messages.api_versions import ApiVersionsRequest
from broker.protocol.messages.describe_broker import DescribeBrokerRequest, DescribeBrokerResponse
from broker.protocol.messages.offset_commit import OffsetCommitRequest
from broker.server.request_times import RequestTimes
from tests.harness.wire_client import WireClient


def bucket_of(us: int) -> int:
    times = RequestTimes()
    times.add(0, (us + 0.5) / 1e6)
    return times.counts[0].index(1)


def test_every_time_is_within_the_limits_of_its_bucket() -> None:
    rng = random.Random(7)
    for us in (*range(300), *(rng.randrange(2 ** rng.randrange(8, 31)) for _ in range(2_000))):
        first, after = limits(bucket_of(us))
        assert first <= us < after
        assert after - first <= max(1, first / 4)


@pytest.mark.parametrize("seconds", [-0.1, 0.0, 1e-9, 3_600.0, 1e9])
def test_times_out_of_range_count_in_the_first_and_the_last_bucket(seconds: float) -> None:
    times = RequestTimes()
    times.add(0, seconds)
    assert times.counts[0].index(1) in (0, BUCKETS - 1)


def test_requests_flushes_connections_and_sizes_are_reported(client: WireClient) -> None:
    def counted(answer: DescribeBrokerResponse) -> dict[int, int]:
        return {row.api_key: sum(row.counts) for row in answer.times}

    before = client.ask(DescribeBrokerRequest())
    client.ask(ApiVersionsRequest(client_software_name="test", client_software_version="1.0"))
    for _ in range(3):
        partition = OffsetCommitRequest.Partition(partition_index=0, committed_offset=1, committed_metadata="")
        topic = OffsetCommitRequest.Topic(name="none", partitions=[partition])
        client.ask(OffsetCommitRequest(group_id="describe-broker", member_id="", topics=[topic]), 8)
    after = client.ask(DescribeBrokerRequest())

    assert (after.error_code, after.durability) == (0, "process")
    assert 0 < after.started_ms <= after.wall_ms
    assert after.store_bytes > 0
    assert after.wal_bytes >= 0
    assert sum(row.connections for row in after.listeners) >= 1
    assert 1 <= sum(row.connections for row in after.listeners) <= after.max_connections
    more = {key: count - counted(before).get(key, 0) for key, count in counted(after).items()}
    # A request counts when its answer is sent.
    assert (more[ApiVersionsRequest.API_KEY], more[OffsetCommitRequest.API_KEY]) == (1, 3)
    assert more[DescribeBrokerRequest.API_KEY] == 1
    assert all(len(row.buckets) == len(row.counts) for row in after.times)
