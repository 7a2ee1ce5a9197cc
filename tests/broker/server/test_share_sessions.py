"""Share sessions answer what Kafka does, in recorded walks of ShareFetch, ShareAcknowledge and DescribeShareGroupOffsets."""

from __future__ import annotations

from tests.harness.oracle.share_sessions.recorded import difference, recorded
from tests.harness.running import RunningBroker
from tests.harness.share_member import enable_share_groups


def test_recorded_walks_have_kafkas_answers(running: RunningBroker) -> None:
    with running.client() as client:
        enable_share_groups(client)
    walks = 0
    for walk in recorded():
        assert difference(running.address, walk) is None
        walks += 1
    assert walks == 60
