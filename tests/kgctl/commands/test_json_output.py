"""JSON of every listing and plan, checked by schema: the keys are a promise to scripts."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from tests.harness.clusters import Cluster, fresh
from tests.harness.commandline import Kgctl, fill, member_of
from tests.harness.reference_kafka import ReferenceKafka

TEXT, NUMBER, FLAG = {"type": "string"}, {"type": "integer"}, {"type": "boolean"}


def or_null(schema: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [schema, {"type": "null"}]}


def array(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": schema}


def exactly(**properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


MAYBE_TEXT, MAYBE_NUMBER = or_null(TEXT), or_null(NUMBER)
TOPIC_PARTITIONS = array(exactly(topic=TEXT, partitions=array(NUMBER)))
ASSIGNMENT = or_null(TOPIC_PARTITIONS)
STATUS = {"enum": ["planned", "done", "failed", "skipped", "exists"]}
ROWS = {
    "groups": exactly(group=TEXT, type=MAYBE_TEXT, state=MAYBE_TEXT, protocol=MAYBE_TEXT),
    "group-offsets": exactly(
        group=TEXT,
        topic=MAYBE_TEXT,
        partition=MAYBE_NUMBER,
        leader_epoch=MAYBE_NUMBER,
        current_offset=MAYBE_NUMBER,
        log_end_offset=MAYBE_NUMBER,
        lag=MAYBE_NUMBER,
        consumer_id=MAYBE_TEXT,
        host=MAYBE_TEXT,
        client_id=MAYBE_TEXT,
        group_instance_id=MAYBE_TEXT,
        error=MAYBE_TEXT,
    ),
    "group-members": exactly(
        group=TEXT,
        consumer_id=MAYBE_TEXT,
        group_instance_id=MAYBE_TEXT,
        host=MAYBE_TEXT,
        client_id=MAYBE_TEXT,
        partitions=MAYBE_NUMBER,
        generation=MAYBE_NUMBER,
        current_epoch=MAYBE_NUMBER,
        current_assignment=ASSIGNMENT,
        target_epoch=MAYBE_NUMBER,
        target_assignment=ASSIGNMENT,
        leader=or_null(FLAG),
        session_timeout_ms=MAYBE_NUMBER,
        rebalance_timeout_ms=MAYBE_NUMBER,
        phase=MAYBE_TEXT,
        heartbeat_age_ms=MAYBE_NUMBER,
        error=MAYBE_TEXT,
    ),
    "group-state": exactly(
        group=TEXT,
        coordinator=MAYBE_TEXT,
        coordinator_id=MAYBE_NUMBER,
        assignment_strategy=MAYBE_TEXT,
        state=MAYBE_TEXT,
        group_epoch=MAYBE_NUMBER,
        target_assignment_epoch=MAYBE_NUMBER,
        members=MAYBE_NUMBER,
        generation=MAYBE_NUMBER,
        type=MAYBE_TEXT,
        error=MAYBE_TEXT,
    ),
    "offset-reset": exactly(
        group=TEXT,
        topic=TEXT,
        partition=MAYBE_NUMBER,
        old_offset=MAYBE_NUMBER,
        new_offset=MAYBE_NUMBER,
        delta=MAYBE_NUMBER,
        note=MAYBE_TEXT,
        status=STATUS,
        error=MAYBE_TEXT,
    ),
    "offset-deletion": exactly(
        group=TEXT, topic=TEXT, partition=MAYBE_NUMBER, old_offset=MAYBE_NUMBER, status=STATUS, error=MAYBE_TEXT
    ),
    "group-deletion": exactly(group=TEXT, state=MAYBE_TEXT, status=STATUS, error=MAYBE_TEXT),
    "member-removal": exactly(
        group=TEXT,
        consumer_id=TEXT,
        group_instance_id=MAYBE_TEXT,
        host=MAYBE_TEXT,
        client_id=MAYBE_TEXT,
        status=STATUS,
        error=MAYBE_TEXT,
    ),
    "group-history": exactly(
        group=TEXT,
        timestamp=NUMBER,
        generation=NUMBER,
        event=TEXT,
        cause=MAYBE_TEXT,
        reason=MAYBE_TEXT,
        prepare_ms=MAYBE_NUMBER,
        complete_ms=MAYBE_NUMBER,
        members=NUMBER,
        joined_count=NUMBER,
        left_count=NUMBER,
        partitions_moved=MAYBE_NUMBER,
        commits_rejected=NUMBER,
        joined=array(TEXT),
        left=array(TEXT),
        left_causes=array(TEXT),
        absent=array(TEXT),
        absent_count=NUMBER,
        assignment=or_null({"type": "object", "additionalProperties": TOPIC_PARTITIONS}),
    ),
    "group-rebalance": exactly(
        group=TEXT,
        consumer_id=TEXT,
        group_instance_id=MAYBE_TEXT,
        host=MAYBE_TEXT,
        client_id=MAYBE_TEXT,
        method={"enum": ["trigger", "eviction"]},
        generation_before=MAYBE_NUMBER,
        generation_after=MAYBE_NUMBER,
        stable_after_ms=MAYBE_NUMBER,
        status={"enum": ["planned", "done", "failed", "rejoined", "joined", "gone"]},
        error=MAYBE_TEXT,
    ),
    "topics": exactly(topic=TEXT, partitions=NUMBER, replicas=NUMBER, internal=FLAG, error=MAYBE_TEXT),
    "topic-partitions": exactly(
        topic=TEXT,
        partition=MAYBE_NUMBER,
        leader=MAYBE_NUMBER,
        leader_epoch=MAYBE_NUMBER,
        replicas=array(NUMBER),
        isr=array(NUMBER),
        log_start_offset=MAYBE_NUMBER,
        log_end_offset=MAYBE_NUMBER,
        records=MAYBE_NUMBER,
        error=MAYBE_TEXT,
    ),
    "topic-configs": exactly(topic=TEXT, config=TEXT, value=MAYBE_TEXT, source=TEXT, error=MAYBE_TEXT),
    "topic-changes": exactly(
        topic=TEXT, partitions=MAYBE_NUMBER, replicas=MAYBE_NUMBER, status=STATUS, error=MAYBE_TEXT
    ),
}
COMMANDS = {
    "groups": ["groups list"],
    "group-offsets": ["groups describe EMPTY LIVE", "groups describe ABSENT"],
    "group-members": ["groups describe EMPTY LIVE ABSENT --members", "groups describe LIVE --members --verbose"],
    "group-state": ["groups describe EMPTY LIVE ABSENT --state"],
    "offset-reset": [
        "groups reset-offsets EMPTY --topic TOPIC --to-offset 9999",
        "groups reset-offsets EMPTY --topic TOPIC:0,7 --shift-by 1",
        "groups reset-offsets EMPTY --topic ABSENT --to-latest",
    ],
    "offset-deletion": ["groups delete-offsets EMPTY --topic TOPIC:0,7 --topic ABSENT"],
    "group-deletion": ["groups delete EMPTY LIVE ABSENT"],
    "member-removal": ["groups remove-members LIVE --all", "groups remove-members LIVE --member m --instance i"],
    "group-history": ["groups history LIVE"],
    "group-rebalance": ["groups rebalance LIVE --evict"],
    "topics": ["topics list"],
    "topic-partitions": ["topics describe TOPIC ABSENT", "topics describe"],
    "topic-configs": ["topics describe TOPIC --all-configs", "topics describe TOPIC ABSENT --configs"],
    "topic-changes": ["topics create TOPIC", "topics create TOPIC --if-not-exists", "topics delete TOPIC ABSENT"],
}


@pytest.mark.parametrize("kind", ROWS)
def test_the_json_of_each_kind_keeps_its_schema(cluster: Cluster, kind: str) -> None:
    if kind == "group-history" and isinstance(cluster, ReferenceKafka):
        pytest.skip("Kafka keeps no history")
    kgctl = Kgctl(cluster.bootstrap_servers)
    names = {"TOPIC": fresh("t"), "EMPTY": fresh("empty"), "LIVE": fresh("live"), "ABSENT": fresh("absent")}
    assert kgctl("topics", "create", names["TOPIC"], "--partitions", 2).exit_code == 0
    fill(kgctl, names["TOPIC"], [3])
    kgctl.commit(names["EMPTY"], names["TOPIC"], p0=1)
    schema = exactly(version={"const": 1}, kind={"const": kind}, rows=array(ROWS[kind]))
    with member_of(kgctl, names["LIVE"], {names["TOPIC"]: [0, 1]}):
        for command in COMMANDS[kind]:
            words = command
            for name, value in names.items():
                words = words.replace(name, value)
            result = kgctl(*words.split(), "-o", "json")
            jsonschema.validate(json.loads(result.stdout), schema)
