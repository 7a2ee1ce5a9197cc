"""Options for Spark's connector, and when its empty result is refused; published positions."""

from __future__ import annotations

import pytest

from kgctl.contexts.connecting import connection_at
from kgctl.pipelines.schemas.sources import OFFSETS_TOPIC
from kgctl.pipelines.settings import RunSettings
from kgctl.pipelines.source.connector import (
    DEPRECATED_OFFSET_FETCHING,
    FAST,
    ReadNothing,
    refuse_empty,
    session_conf,
    stream_options,
)
from kgctl.pipelines.source.options import read_options
from kgctl.pipelines.source.positions import group_of, publish
from tests.kgctl.pipelines.source.topics import Topics


def settings(topics: Topics, **given: object) -> RunSettings:
    return RunSettings((), topics.bootstrap_servers, "", **{"source": "kafka"} | given)  # type: ignore[arg-type]


def test_the_connector_gets_the_options_that_make_it_fast(topics: Topics) -> None:
    options = stream_options(settings(topics), ["a", "b"])
    assert FAST.items() <= options.items()
    assert options["subscribe"] == "a,b"
    assert options["startingOffsets"] == "earliest"
    assert not FAST.keys() & stream_options(settings(topics, source="kgctl"), ["a"]).keys()


def test_the_users_options_override_ours(topics: Topics) -> None:
    options = stream_options(settings(topics, source_options=(("kafka.fetch.max.wait.ms", "99"),)), ["a"])
    assert options["kafka.fetch.max.wait.ms"] == "99"


def test_a_stream_may_start_at_a_time_and_be_limited(topics: Topics) -> None:
    options = stream_options(settings(topics, since=5000, max_offsets_per_trigger=10), ["a"])
    assert "startingOffsets" not in options
    read = read_options(options)
    assert read.max_offsets_per_trigger == 10
    assert options["startingTimestamp"] == "5000"


def test_only_internal_topics_need_deprecated_offset_fetching() -> None:
    assert session_conf(["orders"]) == {}
    assert session_conf(["orders", OFFSETS_TOPIC]) == {DEPRECATED_OFFSET_FETCHING: "true"}


def test_an_empty_result_is_refused_if_the_internal_topic_holds_records(topics: Topics) -> None:
    name = topics.make()
    topics.count(name, 3)
    assert publish(connection_at(topics.bootstrap_servers), "refusing", {name: {0: 2}}) is None
    with pytest.raises(ReadNothing, match=rf"{OFFSETS_TOPIC}.*{DEPRECATED_OFFSET_FETCHING}=true"):
        refuse_empty(connection_at(topics.bootstrap_servers), [OFFSETS_TOPIC], 0)
    refuse_empty(connection_at(topics.bootstrap_servers), [OFFSETS_TOPIC], 1)
    refuse_empty(connection_at(topics.bootstrap_servers), [name], 0)


def test_positions_are_committed_under_a_group_per_job(topics: Topics) -> None:
    name = topics.make(partitions=2)
    assert publish(connection_at(topics.bootstrap_servers), "decode", {name: {0: 5, 1: 7}}) is None
    with topics.admin() as admin:
        commits = admin.committed([group_of("decode")])["spark-decode"]
    assert isinstance(commits, dict)
    assert {key: one.offset for key, one in commits.items()} == {(name, 0): 5, (name, 1): 7}


def test_a_position_that_cannot_be_committed_is_a_note_not_an_error() -> None:
    note = publish(connection_at("127.0.0.1:1"), "decode", {"t": {0: 1}})
    assert note is not None
    assert note.startswith("cannot commit the position of decode for group spark-decode: 127.0.0.1:1")
    assert publish(connection_at("127.0.0.1:1"), "decode", {}) is None
