"""What a read-only connection sends: each request of the protocol reads or changes something."""

from __future__ import annotations

import pytest

from broker.protocol.api_keys import APIS
from kgctl.client.net.read_only import ReadOnly, check_reads

READS = """
    ApiVersions ConsumerGroupDescribe DescribeAcls DescribeBroker DescribeClientQuotas DescribeClients DescribeCluster
    DescribeConfigs DescribeGroupDetails DescribeGroups DescribeLogDirs DescribeProducers DescribeTelemetry
    DescribeShareGroupOffsets DescribeTopicPartitions DescribeTransactions
    DescribeUserScramCredentials Fetch FindCoordinator ListConfigResources ListGroups ListOffsets ListTransactions
    Metadata OffsetFetch OffsetForLeaderEpoch SaslAuthenticate SaslHandshake ShareGroupDescribe
"""


def test_a_read_only_connection_sends_requests_that_read_and_no_others() -> None:
    for api in APIS.values():
        asked = api.request.__new__(api.request)
        if api.name in READS.split():
            check_reads(asked)
            continue
        with pytest.raises(ReadOnly, match=f"{api.name} is refused: the context is read-only"):
            check_reads(asked)
