"""Topic configs are Kafka's: names, defaults and what is valid."""

from __future__ import annotations

import pytest

from broker.storage import TOPIC_CONFIGS, LogSettings
from broker.storage.topic_configs import Policy

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
def test_values_are_checked_on_both_sides_of_their_bounds(name: str, good: list[str], bad: list[str]) -> None:
    for value in good:
        TOPIC_CONFIGS[name].check(value)
    for value in bad:
        with pytest.raises(ValueError, match=name):
            TOPIC_CONFIGS[name].check(value)


def test_every_default_is_valid_and_the_log_s_own() -> None:
    for config in TOPIC_CONFIGS.values():
        config.check(config.default)
    defaults = {name: config.default for name, config in TOPIC_CONFIGS.items()}
    assert Policy.of(defaults, {}, LogSettings()) == Policy.of({}, {}, LogSettings())


def test_a_topic_s_own_config_wins_over_the_broker_s_over_the_settings() -> None:
    settings = LogSettings(retention_ms=1, segment_bytes=11)
    broker = {"log.retention.ms": "2", "log.segment.bytes": "22"}
    policy = Policy.of({"retention.ms": "3"}, broker, settings)
    assert (policy.retention_ms, policy.segment_bytes) == (3, 22)
    assert Policy.of({}, {}, settings).segment_bytes == 11
