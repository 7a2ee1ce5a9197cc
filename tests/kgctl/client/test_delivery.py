"""What a crash does to records, by delivery guarantee: the programs of docs/clients.md, killed at their worst moment."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.local import LocalBroker
from kgctl import Admin, Consumer, Producer, TopicPartition
from tests.harness.clusters import CONFIG
from tests.harness.delivery_programs import (
    AT_LEAST_ONCE,
    AT_MOST_ONCE,
    EXACTLY_ONCE,
    INPUT,
    OUTPUT,
    PREFIX,
    PRODUCERS,
    SHORT_SESSION,
    Running,
)
from tests.harness.running import until

RECORDS = 50
# The program dies in its third poll.
FIRST, CUT = 20, 10
OPTIONS = {"max_poll_records": CUT, **SHORT_SESSION}
ALL = [str(number) for number in range(RECORDS)]
KILLED = -9


@pytest.fixture
def bootstrap() -> Iterator[str]:
    """A broker with empty topics."""
    with LocalBroker(config=CONFIG) as running, Admin(running.bootstrap_servers) as admin:
        assert all(row.error is None for row in admin.create_topics([INPUT, OUTPUT], partitions=1))
        yield running.bootstrap_servers


def fill(bootstrap: str, guarantee: str) -> None:
    # One batch, so that each poll returns ten records.
    with Producer(bootstrap_servers=bootstrap, linger_ms=60_000, **PRODUCERS[guarantee]) as producer:
        for number in ALL:
            producer.send(INPUT, number.encode())


def crash(guarantee: str, bootstrap: str, output: Path, method: str, when: str) -> list[str]:
    """Run the program until it is killed in its third poll. Returns what it has printed."""
    died = Running(guarantee, bootstrap, output, OPTIONS, method, when, "3")
    try:
        assert died.code() == KILLED
        return died.printed()
    finally:
        died.kill()


def finish(guarantee: str, bootstrap: str, output: Path) -> list[str]:
    """Start it again, and wait until it has printed the last record. Returns what both have printed."""
    again = Running(guarantee, bootstrap, output, OPTIONS)
    try:
        until(lambda: again.check() or ALL[-1] in again.printed(), 30)  # type: ignore[func-returns-value]
        return again.printed()
    finally:
        again.kill()


def results(bootstrap: str, isolation: str) -> list[str]:
    """The records that the program has produced."""
    partition = TopicPartition(OUTPUT, 0)
    found: list[str] = []
    with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest", isolation_level=isolation) as consumer:
        consumer.assign([partition])
        (end,) = consumer.end_offsets([partition]).values()
        while consumer.position(partition) < end:
            found += [record.value.removeprefix(PREFIX).decode() for record in consumer.poll()]
    return found


def test_at_most_once_loses_what_was_committed_and_not_processed(bootstrap: str, tmp_path: Path) -> None:
    fill(bootstrap, AT_MOST_ONCE)
    output = tmp_path / "printed"
    assert crash(AT_MOST_ONCE, bootstrap, output, "Consumer.commit", "after") == ALL[:FIRST]
    assert finish(AT_MOST_ONCE, bootstrap, output) == ALL[:FIRST] + ALL[FIRST + CUT :]


def test_at_least_once_repeats_what_was_processed_and_not_committed(bootstrap: str, tmp_path: Path) -> None:
    fill(bootstrap, AT_LEAST_ONCE)
    output = tmp_path / "printed"
    assert crash(AT_LEAST_ONCE, bootstrap, output, "Consumer.commit", "before") == ALL[: FIRST + CUT]
    assert finish(AT_LEAST_ONCE, bootstrap, output) == ALL[: FIRST + CUT] + ALL[FIRST:]


@pytest.mark.parametrize(
    ("method", "when", "was_committed"),
    [
        ("Producer.send_offsets_to_transaction", "before", False),
        ("Producer.commit_transaction", "before", False),
        ("Producer.commit_transaction", "after", True),
    ],
    ids=["before the offsets", "before the commit", "after the commit"],
)
def test_exactly_once_neither_loses_nor_repeats(
    bootstrap: str, tmp_path: Path, method: str, when: str, was_committed: bool
) -> None:
    fill(bootstrap, EXACTLY_ONCE)
    output = tmp_path / "printed"
    crash(EXACTLY_ONCE, bootstrap, output, method, when)
    done = FIRST + CUT if was_committed else FIRST
    assert results(bootstrap, "read_committed") == ALL[:done]
    again = Running(EXACTLY_ONCE, bootstrap, output, OPTIONS)
    try:
        until(lambda: again.check() or results(bootstrap, "read_committed")[-1] == ALL[-1], 30)  # type: ignore[func-returns-value]
    finally:
        again.kill()
    assert results(bootstrap, "read_committed") == ALL
    # The crash did leave records: whoever reads without isolation sees them twice.
    assert results(bootstrap, "read_uncommitted") == ALL[: FIRST + CUT] + ALL[done:]
