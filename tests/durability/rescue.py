"""Each round damages a store in one more way, rescues the directory, and compares what clients then read with the journal.

Records come from idempotent producers and are read back with librdkafka. Committed offsets go back through the file that
the rescue writes and `kgctl groups reset-offsets`.
"""

from __future__ import annotations

import csv
import random
from collections.abc import Callable, Mapping
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition

from broker.local import BrokerFailed, LocalBroker
from tests.durability.parts import Violation
from tests.harness.commandline import Kgctl
from tests.harness.store_damages import DAMAGES

TOPICS = {"orders": 3, "compacted": 1, "empty": 2}
RECORDS, GROUPS = 600, 6
CONFIG: dict[str, str | int] = {
    "group.initial.rebalance.delay.ms": 0,
    "log.segment.bytes": 1 << 20,
    "log.cleaner.backoff.ms": 200,
}
NO_STORE = ("no store", "the file cut to nothing")  # --accept-loss starts without it

Records = dict[tuple[str, int, int], tuple[bytes | None, bytes | None]]
Offsets = dict[tuple[str, str, int], int]


def run(directory: Path, seed: int, rounds: int, report: Callable[[str], None]) -> Mapping[str, object]:
    records = listed = newest = refused = 0
    kinds = list(DAMAGES)
    for number in range(rounds):
        name = kinds[number % len(kinds)]
        randomness = random.Random(seed + number)
        path = directory / str(number)
        written, committed = _fill(path, randomness)
        DAMAGES[name](path, randomness)
        refused += _refuse(path, name, number)
        into, file = directory / f"{number}-rescued", directory / f"{number}.csv"
        done = Kgctl()(
            "broker", "rescue", "--data-dir", path, "--into", into, "--offsets-to", file, "--execute", "-o", "json"
        )
        _expect(done.exit_code == 0, number, name, f"rescue ended with {done.exit_code}: {done.output}")
        offsets = _offsets_in(file)
        for key, offset in offsets.items():
            _expect(offset in committed.get(key, ()), number, name, f"{key} has offset {offset}, which it never had")
        with LocalBroker(CONFIG, data_dir=into) as broker:
            found = _read(broker.bootstrap_servers)
            _expect(found == written, number, name, _difference(written, found))
            _put_back(Kgctl(broker.bootstrap_servers), file, offsets, number, name)
            _continue(broker.bootstrap_servers, written, number, name)
        records += len(found)
        listed += len(offsets)
        newest += sum(committed[key][-1] == offset for key, offset in offsets.items())
        report(f"rescue: round {number}, {name}: {len(found)} records, {len(offsets)} of {len(committed)} offsets")
    return {"rounds": rounds, "refused": refused, "records": records, "lost": 0, "offsets": listed, "newest": newest}


def _expect(condition: bool, number: int, name: str, message: str) -> None:
    if not condition:
        raise Violation(f"round {number} ({name}): {message}")


def _fill(path: Path, randomness: random.Random) -> tuple[Records, dict[tuple[str, str, int], list[int]]]:
    """Topics with records and committed offsets, of which some are only in the WAL; then the broker is killed or stops."""
    written: Records = {}
    committed: dict[tuple[str, str, int], list[int]] = {}
    with LocalBroker(CONFIG, data_dir=path, durability=randomness.choice(["power", "process"])) as broker:
        kgctl = Kgctl(broker.bootstrap_servers)
        for topic, partitions in TOPICS.items():
            policy = "compact" if topic == "compacted" else "delete"
            kgctl("topics", "create", topic, "--partitions", partitions, "--config", f"cleanup.policy={policy}")
        for part in range(3):
            _produce(broker.bootstrap_servers, randomness, written, RECORDS // 3)
            for group in range(GROUPS):
                topic, partition = "orders", randomness.randrange(TOPICS["orders"])
                offset = randomness.randrange(1 + sum(key[:2] == (topic, partition) for key in written))
                kgctl.commit(f"group {group}", topic, **{f"p{partition}": offset})
                committed.setdefault((f"group {group}", topic, partition), []).append(offset)
            if part == randomness.randrange(3):
                broker.restart()
        if randomness.random() < 0.7:
            broker.kill()
    return written, committed


def _produce(address: str, randomness: random.Random, written: Records, count: int) -> None:
    producer = Producer({"bootstrap.servers": address, "enable.idempotence": True, "linger.ms": 1})

    def delivered(error: object, message: object) -> None:
        assert error is None, error
        assert message is not None
        key = message.topic(), message.partition(), message.offset()  # type: ignore[attr-defined]
        written[key] = (message.key(), message.value())  # type: ignore[attr-defined]

    for number in range(count):
        topic = randomness.choice(["orders", "orders", "compacted"])
        # Each key once, so that compaction removes nothing.
        key = b"%d-%d" % (len(written), number)
        value = randomness.randbytes(randomness.choice([5, 80, 3000]))
        producer.produce(topic, value, key, partition=randomness.randrange(TOPICS[topic]), on_delivery=delivered)
        if number % 50 == 0:
            producer.flush()
    assert producer.flush(20) == 0


def _refuse(path: Path, name: str, number: int) -> bool:
    """No start takes the directory. Return whether not even --accept-loss does."""
    try:
        with LocalBroker(CONFIG, data_dir=path):
            pass
    except BrokerFailed as failure:
        is_named = failure.code == 11 and "kgctl broker rescue" in failure.line
        _expect(is_named, number, name, f"exit code {failure.code}: {failure.line}")
    else:
        _expect(False, number, name, "the broker starts")
    if name.startswith(NO_STORE):
        return False
    result = Kgctl()("broker", "start", "--data-dir", path, "--listen", "127.0.0.1:0", "--accept-loss")
    _expect(result.exit_code == 11, number, name, f"--accept-loss ends with {result.exit_code}: {result.output}")
    return True


def _read(address: str) -> Records:
    """Everything that a consumer gets from the start of all partitions."""
    consumer = Consumer({"bootstrap.servers": address, "group.id": "reader", "enable.partition.eof": True})
    partitions = [TopicPartition(topic, index, 0) for topic, count in TOPICS.items() for index in range(count)]
    # Topics without records are named by the store alone.
    known = consumer.list_topics(timeout=20).topics
    partitions = [partition for partition in partitions if partition.topic in known]
    consumer.assign(partitions)
    found: Records = {}
    ended = 0
    while ended < len(partitions):
        message = consumer.poll(20)
        assert message is not None, "the consumer waits"
        if message.error():
            ended += 1
        else:
            found[message.topic(), message.partition(), message.offset()] = (message.key(), message.value())
    consumer.close()
    return found


def _difference(written: Records, found: Records) -> str:
    missing, foreign = written.keys() - found.keys(), found.keys() - written.keys()
    changed = [key for key in written.keys() & found.keys() if written[key] != found[key]]
    return f"missing {sorted(missing)[:5]}, foreign {sorted(foreign)[:5]}, changed {changed[:5]}"


def _offsets_in(file: Path) -> Offsets:
    with file.open(newline="") as lines:
        return {(group, topic, int(partition)): int(offset) for group, topic, partition, offset in csv.reader(lines)}


def _put_back(kgctl: Kgctl, file: Path, offsets: Offsets, number: int, name: str) -> None:
    for group in {key[0] for key in offsets}:
        done = kgctl("groups", "reset-offsets", group, "--from-file", file, "--create", "--execute")
        _expect(done.exit_code == 0, number, name, f"reset-offsets: {done.output}")
        for row in kgctl.rows("groups", "describe", group):
            key = group, row["topic"], row["partition"]
            _expect(row["current_offset"] == offsets[key], number, name, f"{key} is at {row['current_offset']}")


def _continue(address: str, written: Records, number: int, name: str) -> None:
    """The next record of each partition gets the next offset."""
    before = dict(written)
    _produce(address, random.Random(number), written, 20)
    for topic, count in TOPICS.items():
        for partition in range(count):
            offsets = sorted(offset for found, index, offset in written if (found, index) == (topic, partition))
            _expect(
                offsets == list(range(len(offsets))), number, name, f"{topic}-{partition} has a gap: {offsets[-5:]}"
            )
    _expect(len(written) == len(before) + 20, number, name, "an offset was given out again")
