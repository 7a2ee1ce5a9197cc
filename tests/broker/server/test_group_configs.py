"""The configs of groups: refused and shown as by a Kafka, durable, and applied to the members of consumer groups."""

from __future__ import annotations

from pathlib import Path

from broker.protocol.errors import ErrorCode
from tests.broker.cores.groups.consumer.clients import beat
from tests.harness.group_configs import BEAT, CASES, DEFAULT, DEFAULTS, OPTIONS, OWN, SESSION, alter, describe
from tests.harness.requests import create_topic
from tests.harness.running import RunningBroker


def test_configs_of_groups_are_refused_and_shown_as_by_kafka(tmp_path: Path) -> None:
    with RunningBroker(tmp_path / "data", **OPTIONS) as running, running.client() as client:
        assert describe(client, "g") == {name: (value, DEFAULT) for name, value in DEFAULTS.items()}
        for changes, message in CASES:
            expected = (ErrorCode.NONE, None) if message is None else (ErrorCode.INVALID_CONFIG, message)
            assert alter(client, "g", {**changes}, only_check=True) == expected, changes
        assert describe(client, "g")[SESSION] == ("50000", DEFAULT)


def test_a_change_is_checked_together_with_what_the_group_has(tmp_path: Path) -> None:
    with RunningBroker(tmp_path / "data", **OPTIONS) as running, running.client() as client:
        assert alter(client, "g", {SESSION: " 8000 "}) == (ErrorCode.NONE, None)
        late = (ErrorCode.INVALID_CONFIG, f"{SESSION} must be greater than {BEAT}")
        assert alter(client, "g", {BEAT: "8000"}) == late
        assert alter(client, "g", {BEAT: "7999"}) == (ErrorCode.NONE, None)
        assert alter(client, "g", {SESSION: None, BEAT: "15000"}) == (ErrorCode.NONE, None)
        assert alter(client, "g", {SESSION: "8000"}) == late
        shown = describe(client, "g")
    assert (shown[SESSION], shown[BEAT]) == (("50000", DEFAULT), ("15000", OWN))


def test_the_members_of_a_group_get_its_heartbeat_interval_also_after_a_restart(tmp_path: Path) -> None:
    with RunningBroker(tmp_path / "data", **OPTIONS) as running:
        with running.client() as client:
            create_topic(client, "orders")
            assert client.ask(beat("a", 0)).heartbeat_interval_ms == 7000
            assert client.ask(beat("b", 0, group="other")).heartbeat_interval_ms == 7000
            assert alter(client, "g", {BEAT: "200", SESSION: "300000"})[0] == ErrorCode.INVALID_CONFIG
            assert client.ask(beat("a", 1)).heartbeat_interval_ms == 7000
            assert alter(client, "g", {BEAT: "200"}) == (ErrorCode.NONE, None)
            assert client.ask(beat("a", 1)).heartbeat_interval_ms == 200
        running.restart()
        with running.client() as client:
            assert client.ask(beat("a", 1)).heartbeat_interval_ms == 200
            assert client.ask(beat("b", 1, group="other")).heartbeat_interval_ms == 7000
