"""Topics and their configs: names, defaults and valid values are Kafka's."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker.storage import TOPIC_CONFIGS, LogSettings
from broker.storage.topic_configs import Policy
from tests.harness.stores import append, open_log

GOOD_AND_BAD = [
    ("retention.ms", ["-1", "0", "9223372036854775807"], ["-2", "x", "", "9223372036854775808", "1.5"]),
    ("segment.bytes", ["1048576", "2147483647"], ["1048575", "2147483648"]),
    ("max.message.bytes", ["0", "2147483647"], ["-1", "2147483648"]),
    ("cleanup.policy", ["delete", "compact", "compact,delete", "compact, delete"], ["x", "compact,x"]),
    ("min.cleanable.dirty.ratio", ["0", "1", "0.5"], ["-0.1", "1.1", "nan", "x"]),
    ("message.timestamp.type", ["CreateTime", "LogAppendTime"], ["createtime", ""]),
    ("compression.type", ["producer", "zstd", "uncompressed"], ["none", "brotli"]),
    ("compression.gzip.level", ["-1", "1", "9"], ["0", "10", "-2"]),
    ("preallocate", ["true", "false", "TRUE"], ["yes", "1"]),
    ("min.insync.replicas", ["1"], ["0"]),
    ("segment.ms", ["1"], ["0"]),
    ("leader.replication.throttled.replicas", ["", "*", "0:1,1:2"], ["0", "a:b"]),
]


@pytest.mark.parametrize(("name", "good", "bad"), GOOD_AND_BAD)
def test_config_values_are_checked_on_both_sides_of_their_limits(name: str, good: list[str], bad: list[str]) -> None:
    for value in good:
        TOPIC_CONFIGS[name].check(value)
    for value in bad:
        with pytest.raises(ValueError, match=name):
            TOPIC_CONFIGS[name].check(value)


def test_every_default_is_valid_and_used() -> None:
    for config in TOPIC_CONFIGS.values():
        config.check(config.default)
    defaults = {name: config.default for name, config in TOPIC_CONFIGS.items()}
    assert Policy.of(defaults, {}, LogSettings()) == Policy.of({}, {}, LogSettings())


def test_topic_configs_override_broker_configs_and_settings() -> None:
    settings = LogSettings(retention_ms=1, segment_bytes=11)
    broker = {"log.retention.ms": "2", "log.segment.bytes": "22"}
    policy = Policy.of({"retention.ms": "3"}, broker, settings)
    assert (policy.retention_ms, policy.segment_bytes) == (3, 22)
    assert Policy.of({}, {}, settings).segment_bytes == 11


def test_topics_and_configs_survive_a_kill(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    made = log.create_topic("t", 3, {"retention.ms": "5"})
    log.create_topic("gone", 1, {})
    log.flush()
    log.add_partitions("t", 5)
    log.alter_topic_configs("t", {"retention.ms": None, "cleanup.policy": "compact"})
    log.alter_broker_configs({"log.retention.ms": "77"})
    log.delete_topic("gone")
    log.flush()
    log.create_topic("uncommitted", 1, {})
    log.close(clean=False)
    log = open_log(tmp_path)
    assert list(log.topics) == ["__consumer_offsets", "__kgctl_group_events", "__transaction_state", "t"]
    topic = log.topics["t"]
    assert (topic.topic_id, topic.partition_count, topic.configs) == (made.topic_id, 5, {"cleanup.policy": "compact"})
    assert log.topic_by_id(made.topic_id) is topic
    assert dict(log.broker_configs) == {"log.retention.ms": "77"}
    with pytest.raises(ValueError, match="exists"):
        log.create_topic("t", 1, {})
    with pytest.raises(ValueError, match="already"):
        log.add_partitions("t", 5)
    append(log.partition("t", 4), (b"k", b"v"))  # type: ignore[arg-type]
    log.close()
