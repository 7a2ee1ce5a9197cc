"""UpdateFeatures requests, with the answers of Kafka 4.1: our broker and a real Kafka must both give them."""

from __future__ import annotations

from typing import NamedTuple

from broker.protocol.errors import ErrorCode
from broker.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from broker.protocol.messages.find_coordinator import FindCoordinatorRequest
from broker.protocol.messages.update_features import UpdateFeaturesRequest
from tests.harness.running import until
from tests.harness.transactions import TransactionalProducer
from tests.harness.wire_client import WireClient

T = "transaction.version"
UP, SAFE, UNSAFE = 1, 2, 3
UNTYPED = "The controller does not support the given upgrade type."
UNKNOWN = "Local controller 1 does not support this feature."
NOT_FOUND = "Feature nope not found."
NEGATIVE = "A feature version cannot be less than 0."
OUTSIDE = "Local controller 1 only supports versions 0-2"
LOWER = (
    "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe downgrade."
)
HIGHER = "Can't downgrade to a newer version."


class Update(NamedTuple):
    feature: str
    level: int
    upgrade_type: int = UP


class Step(NamedTuple):
    """Updates in one request, why they are refused, and the level of transaction.version afterwards."""

    updates: tuple[Update, ...]
    refused: str | None
    level: int


# The updates that need no upgrade type start at level 2. Version 0 of the request has no other ones.
UPGRADES = [
    Step((), None, 2),
    Step((Update(T, 2),), None, 2),
    Step((Update(T, 1),), LOWER, 2),
    Step((Update(T, 0),), LOWER, 2),
    Step((Update(T, 3),), OUTSIDE, 2),
    Step((Update(T, 32767),), OUTSIDE, 2),
    Step((Update(T, -1),), NEGATIVE, 2),
    Step((Update("nope", 1),), UNKNOWN, 2),
    Step((Update("nope", 0),), NOT_FOUND, 2),
    Step((Update("nope", -1),), NEGATIVE, 2),
    Step((Update("", 1),), UNKNOWN, 2),
    Step((Update(T, 2), Update("nope", 1)), UNKNOWN, 2),
    Step((Update(T, 1), Update(T, 2)), None, 2),
]
# Each starts at the level that the one before leaves.
CHANGES = [
    *(Step((Update(name, level, kind),), UNTYPED, 2) for kind in (-1, 0, 4) for name, level in ((T, 2), ("nope", -1))),
    Step((Update(T, 2, SAFE),), None, 2),
    Step((Update(T, 3, SAFE),), OUTSIDE, 2),
    Step((Update(T, -1, UNSAFE),), NEGATIVE, 2),
    Step((Update("nope", 1, SAFE),), UNKNOWN, 2),
    Step((Update("nope", 0, SAFE),), NOT_FOUND, 2),
    Step((Update(T, 0, SAFE), Update(T, 1)), LOWER, 2),
    Step((Update(T, 1, SAFE),), None, 1),
    Step((Update(T, 1, UNSAFE),), None, 1),
    Step((Update(T, 2, SAFE),), HIGHER, 1),
    Step((Update(T, 2), Update("nope", 1)), UNKNOWN, 1),
    Step((Update(T, 0, UNSAFE),), None, 0),
    Step((Update(T, 0),), None, 0),
    Step((Update(T, 1, UNSAFE),), HIGHER, 0),
    Step((Update(T, 1), Update(T, 2)), None, 2),
    Step((Update(T, 1), Update(T, 0, SAFE)), None, 0),
    Step((Update(T, 1),), None, 1),
    Step((Update(T, 2),), None, 2),
]


def check_all(client: WireClient) -> None:
    for version in (0, 1, 2):
        for step in UPGRADES:
            check(client, step, version)
    for version in (1, 2):
        before = 2
        for step in CHANGES:
            check(client, step._replace(level=before), version, validate_only=True)
            check(client, step, version)
            before = step.level


def check_change_during_transactions(client: WireClient, topic: str) -> None:
    """A producer begins with the requests of level 2 and goes on with those of a lower level, and the other way round."""
    until(lambda: not client.ask(FindCoordinatorRequest(key_type=1, key=topic), 1).error_code)
    producer = TransactionalProducer(client, topic)
    for lower in (1, 0):
        assert producer.produce(topic, b"x").error_code == ErrorCode.NONE
        check(client, Step((Update(T, lower, SAFE),), None, lower), 2)
        # The partition takes part already.
        assert producer.produce(topic, b"x").error_code == ErrorCode.NONE
        assert producer.add_partitions((topic, 1)) == [ErrorCode.NONE]
        assert producer.produce(topic, b"x", partition=1, version=11).error_code == ErrorCode.NONE
        assert producer.end(committed=True, version=4) == ErrorCode.NONE
        assert until(lambda: producer.state() == "CompleteCommit")
        assert producer.add_partitions((topic, 1)) == [ErrorCode.NONE]
        check(client, Step((Update(T, 2),), None, 2), 2)
        assert producer.produce(topic, b"x").error_code == ErrorCode.NONE
        before = producer.epoch
        assert producer.end(committed=False) == ErrorCode.NONE
        assert producer.epoch == before + 1
        assert until(lambda: producer.state() == "CompleteAbort")


def check(client: WireClient, step: Step, version: int, *, validate_only: bool = False) -> None:
    asked = [
        UpdateFeaturesRequest.Update(
            feature=update.feature,
            max_version_level=update.level,
            # Kafka ignores it.
            allow_downgrade=True,
            upgrade_type=update.upgrade_type,
        )
        for update in step.updates
    ]
    answer = client.ask(UpdateFeaturesRequest(feature_updates=asked, validate_only=validate_only), version)
    found = (answer.error_code, answer.error_message)
    shown = f"{step}, version {version}, validate_only={validate_only}: {found}"
    if step.refused is None:
        assert found == (ErrorCode.NONE, None), shown
        rows = [(row.feature, row.error_code, row.error_message) for row in answer.results]
        assert rows == [(update.feature, 0, "NONE") for update in step.updates if version < 2], shown
    else:
        assert found[0] == ErrorCode.INVALID_UPDATE_VERSION, shown
        start = "The update failed for all features since the following feature had an error: Invalid update version "
        assert str(found[1]).startswith(start), shown
        assert str(found[1]).endswith(f". {step.refused}"), shown
        assert answer.results == [], shown
    # A Kafka answers before its broker knows the new level.
    until(lambda: level(client) == step.level)


def versions(client: WireClient, version: int = 4) -> ApiVersionsResponse:
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1.0")
    answer: ApiVersionsResponse = client.ask(request, version)
    return answer


def level(client: WireClient) -> int:
    """The finalized level of transaction.version."""
    rows = {row.name: (row.min_version_level, row.max_version_level) for row in versions(client).finalized_features}
    least, most = rows.get(T, (0, 0))
    assert least == most
    return most
