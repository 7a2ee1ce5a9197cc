"""What holds for plaintext connections also holds over TLS: the tests of other modules, with another listener."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker.server.test_connections import (  # noqa: F401
    test_a_client_that_reads_slowly_gets_every_byte,
    test_the_broker_stops_reading_from_a_client_that_does_not_read,
    test_the_queue_behind_a_parked_request_is_bounded,
)
from tests.broker.server.test_disconnects import (  # noqa: F401
    test_a_client_that_half_closes_gets_the_answers_to_its_requests,
    test_a_dead_client_behind_a_parked_fetch_is_noticed,
    test_a_dead_client_is_noticed_while_the_broker_does_not_read_from_it,
    test_queued_requests_count_in_the_memory_limit_and_spare_large_requests,
)
from tests.harness.certificates import Authority
from tests.harness.running import RunningBroker


@pytest.fixture
def running(tmp_path: Path, authority: Authority) -> Iterator[RunningBroker]:
    with RunningBroker(tmp_path / "data", authority=authority, listeners="SSL://127.0.0.1:0") as broker:
        yield broker
