"""UpdateFeatures and the features in ApiVersions: answers as Kafka's, levels that survive a restart."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness import feature_requests
from tests.harness.feature_requests import SAFE, UP, T, Update
from tests.harness.requests import create_topic
from tests.harness.running import RunningBroker
from tests.harness.wire_client import WireClient


def change(client: WireClient, level: int, upgrade_type: int) -> None:
    feature_requests.check(client, feature_requests.Step((Update(T, level, upgrade_type),), None, level), 2)


def test_answers_are_those_of_kafka(client: WireClient) -> None:
    feature_requests.check_all(client)


def test_the_level_may_change_during_transactions(client: WireClient) -> None:
    create_topic(client, "t", partitions=2)
    feature_requests.check_change_during_transactions(client, "t")


@pytest.mark.parametrize(
    ("version", "supported"), [(0, []), (2, []), (3, []), (4, [(T, 0, 2), ("share.version", 0, 1)])]
)
def test_a_feature_that_starts_at_0_is_shown_from_version_4_on(
    client: WireClient, version: int, supported: list[tuple[str, int, int]]
) -> None:
    answer = feature_requests.versions(client, version)
    assert [(row.name, row.min_version, row.max_version) for row in answer.supported_features] == supported
    finalized = [(row.name, row.min_version_level, row.max_version_level) for row in answer.finalized_features]
    assert finalized == ([(T, 2, 2)] if version >= 3 else [])
    assert answer.finalized_features_epoch == (0 if version >= 3 else -1)


def test_a_level_survives_a_restart_and_the_epoch_grows_with_each_change(tmp_path: Path) -> None:
    with RunningBroker(tmp_path) as running:
        with running.client() as client:
            change(client, 2, UP)
            assert feature_requests.versions(client).finalized_features_epoch == 0
            change(client, 1, SAFE)
            change(client, 0, SAFE)
        running.restart()
        with running.client() as client:
            assert feature_requests.level(client) == 0
            assert feature_requests.versions(client).finalized_features_epoch == 2
            change(client, 2, UP)
            assert feature_requests.versions(client).finalized_features_epoch == 3
