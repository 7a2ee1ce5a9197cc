"""The authorization matrix on a real Kafka with StandardAuthorizer and SASL_SSL: the recording still holds."""

from __future__ import annotations

from tests.harness.authorization import recording
from tests.harness.authorization.clusters import on_kafka


def test_the_recorded_answers_are_those_of_a_kafka() -> None:
    differences = recording.differences(recording.load(), on_kafka())
    assert not differences, "\n".join([f"{len(differences)} answers differ", *differences[:20]])
