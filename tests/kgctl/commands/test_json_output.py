"""The JSON of every listing and plan has the keys and types that its row type declares; docs/cli.md lists the keys."""

from __future__ import annotations

import json

import jsonschema
import pytest

from kgctl.render.layouts import LAYOUTS
from tests.harness.clusters import Cluster, fresh
from tests.harness.commandline import Kgctl, fill, member_of
from tests.harness.reference_kafka import ReferenceKafka

COMMANDS = {
    "groups": ["groups list"],
    "group-summary": ["groups describe EMPTY LIVE ABSENT --summary", "groups describe EMPTY --summary --topic TOPIC"],
    "groups-listed": ["groups list --plain"],
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
    "transactions": ["transactions list"],
    "transaction-states": ["transactions describe ABSENT"],
    "transaction-partitions": ["transactions describe ABSENT --partitions"],
    "hanging-transactions": ["transactions find-hanging --topic TOPIC"],
    "transaction-aborts": [
        "transactions abort ABSENT",
        "transactions abort --topic TOPIC --partition 0 --start-offset 0",
    ],
    "producers": ["producers describe TOPIC:0,7"],
    "topics": ["topics list"],
    "topic-partitions": ["topics describe TOPIC ABSENT", "topics describe"],
    "topic-configs": ["topics describe TOPIC --all-configs", "topics describe TOPIC ABSENT --configs"],
    "topic-changes": ["topics create TOPIC", "topics create TOPIC --if-not-exists", "topics delete TOPIC ABSENT"],
}


@pytest.mark.parametrize("kind", COMMANDS)
def test_the_json_of_each_kind_is_what_its_row_type_declares(cluster: Cluster, kind: str) -> None:
    if kind == "group-history" and isinstance(cluster, ReferenceKafka):
        pytest.skip("Kafka keeps no history")
    kgctl = Kgctl(cluster.bootstrap_servers)
    names = {"TOPIC": fresh("t"), "EMPTY": fresh("empty"), "LIVE": fresh("live"), "ABSENT": fresh("absent")}
    assert kgctl("topics", "create", names["TOPIC"], "--partitions", 2).exit_code == 0
    fill(kgctl, names["TOPIC"], [3])
    kgctl.commit(names["EMPTY"], names["TOPIC"], p0=1)
    schema = json.loads(kgctl("schema", kind).stdout)
    with member_of(kgctl, names["LIVE"], {names["TOPIC"]: [0, 1]}):
        for command in COMMANDS[kind]:
            line = command
            for name, value in names.items():
                line = line.replace(name, value)
            result = kgctl(*line.split(), "-o", "json")
            answer = json.loads(result.stdout)
            jsonschema.validate(answer, schema)
            assert bool(answer["errors"]) == (result.exit_code != 0), line


def test_every_kind_of_groups_topics_and_transactions_has_a_command_here() -> None:
    subjects = ("group", "member-", "offset-", "topic", "transaction", "hanging-", "producer")
    # The summary of a large plan is a table only; programs get each partition.
    shown = {kind for kind in LAYOUTS if kind.startswith(subjects)} - {"offset-reset-summary"}
    assert COMMANDS.keys() == shown
