"""The JSON of every listing and plan has the keys and types that its row type declares; docs/cli.md lists the keys."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from kgctl.app import COMMANDS as ROOT
from kgctl.app import load
from kgctl.commands.shared.effects import kinds_of
from kgctl.commands.shared.loading import verbs_of
from kgctl.render.layouts import LAYOUTS
from kgctl.render.schemas import DIALECT
from tests.harness.clusters import Cluster, fresh
from tests.harness.commandline import Kgctl, fill, member_of
from tests.harness.reference_kafka import ReferenceKafka

SOURCES = Path(__file__).parents[3] / "kgctl" / "commands"
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
    "group-lag": ["groups lag EMPTY LIVE", "groups lag ABSENT"],
    "group-lag-sums": ["groups lag EMPTY LIVE --by topic"],
    "ui-groups": ["ui --once"],
    "ui-partitions": ["ui EMPTY --once", "ui ABSENT --once"],
    "group-conditions": ["groups assert EMPTY LIVE --for lag<5", "groups assert ABSENT --for lag<5"],
    "group-findings": ["groups doctor EMPTY LIVE", "groups doctor ABSENT --verbose"],
    "doctor-rules": ["groups doctor --rules"],
    "cluster-findings": ["cluster doctor"],
    "lab-designs": ["lab designs --members 3 --partitions 4 --failures 1"],
    "bench-records": [
        "bench produce --records 10 --warm-up 0",
        "bench consume --records 10 --warm-up 0",
        "bench consume --topic TOPIC --warm-up 0",
    ],
    "bench-members": ["bench members --count 2 --partitions 2 --duration 0 --rebalances 0"],
    "events": ["events LIVE", "events ABSENT"],
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
    "group-peek": ["groups peek EMPTY", "groups peek EMPTY --before 0 --after 1"],
    "topic-alterations": ["topics alter TOPIC ABSENT --partitions 3 --config retention.ms=5000"],
    "record-deletion": ["topics delete-records TOPIC:0 TOPIC:1:2 TOPIC:7", "topics delete-records ABSENT:0"],
    "configs": ["configs describe topic TOPIC --all", "configs describe topic ABSENT TOPIC", "configs describe broker"],
    "config-changes": ["configs set topic TOPIC retention.ms=5000", "configs unset topic ABSENT retention.ms"],
    "quotas": ["quotas list"],
    "quota-changes": ["quotas set --user ABSENT producer_byte_rate=5", "quotas remove --user ABSENT"],
    "cluster-brokers": ["cluster describe"],
    "cluster-features": ["cluster describe --features"],
    "cluster-feature-changes": ["cluster set-feature share.version=1", "cluster set-feature nope=1"],
    "cluster-apis": ["cluster describe --api-versions"],
    "log-dirs": ["cluster describe --log-dirs"],
    "clients": ["clients list"],
    "client-metrics": ["clients describe"],
    "users": ["users list", "users list ABSENT"],
    "user-changes": ["users delete ABSENT"],
    "group-snapshot": ["groups snapshot EMPTY LIVE ABSENT", "groups snapshot EMPTY"],
    "journal": ["journal"],
    "kinds": ["schema"],
    "contexts": ["context list"],
    "context-test": ["context test"],
    "pipeline-jobs": ["pipeline list"],
    "pipeline-columns": ["pipeline explain lag"],
    "produced": ["produce TOPIC"],
}


@pytest.fixture(scope="module")
def names(cluster: Cluster) -> Iterator[dict[str, str]]:
    """What the commands are about. They plan changes and execute none."""
    kgctl = Kgctl(cluster.bootstrap_servers)
    found = {"TOPIC": fresh("t"), "EMPTY": fresh("empty"), "LIVE": fresh("live"), "ABSENT": fresh("absent")}
    assert kgctl("topics", "create", found["TOPIC"], "--partitions", 2).exit_code == 0
    fill(kgctl, found["TOPIC"], [3])
    kgctl.commit(found["EMPTY"], found["TOPIC"], p0=1)
    with member_of(kgctl, found["LIVE"], {found["TOPIC"]: [0, 1]}, session_ms=600_000):
        yield found


@pytest.mark.parametrize("kind", COMMANDS)
def test_the_json_of_each_kind_is_what_its_row_type_declares(
    cluster: Cluster, names: dict[str, str], kind: str
) -> None:
    if kind == "group-history" and isinstance(cluster, ReferenceKafka):
        pytest.skip("Kafka keeps no history")
    if kind in ("clients", "client-metrics") and isinstance(cluster, ReferenceKafka):
        pytest.skip("Kafka does not list its clients")
    kgctl = Kgctl(cluster.bootstrap_servers)
    schema = Draft202012Validator(json.loads(kgctl("schema", kind).stdout))
    for command in COMMANDS[kind]:
        line = command
        for name, value in names.items():
            line = line.replace(name, value)
        result = kgctl(*line.split(), "-o", "json")
        answer = json.loads(result.stdout)
        # 3: the answer is complete, and a condition is not met.
        assert bool(answer["errors"]) == (result.exit_code not in (0, 3)), line
        # A list of all topics or groups has those of other tests, too.
        answer["rows"] = answer["rows"][:MOST_ROWS]
        schema.validate(answer)
    # No other kind's schema fits; that takes long, and one row decides it.
    answer["rows"] = answer["rows"][:1]
    ANY.validate(answer)


ANY = Draft202012Validator(json.loads(Kgctl()("schema", "--all").stdout))
MOST_ROWS = 20
# Tests of their own: what they need is more than a broker.
ELSEWHERE = {
    "acls",
    "acl-changes",
    "broker-rescue",
    "rescued-offsets",
    "context-settings",
    "local-broker",
    "pipeline-doctor",
    "pipeline-status",
    # See pipelines/replay/test_replays.py.
    "pipeline-replay",
    # See tests/kgctl/pipelines/test_maintain.py and views/test_sql.py.
    "pipeline-maintenance",
    "pipeline-sql-tables",
    # See tests/kgctl/pipelines/archive/test_verify_command.py.
    "pipeline-verify",
    # The summary of a large plan is a table only; programs get each partition.
    "offset-reset-summary",
    # See test_plans_and_undo.py.
    "plan-changes",
    # See test_changes_and_undo.py.
    "plan-items",
    # See test_snapshots.py.
    "group-diff",
    # See test_store.py.
    *(kind for kind in LAYOUTS if kind.startswith("store-")),
}


def test_every_kind_has_a_command_here_and_a_valid_schema() -> None:
    assert LAYOUTS.keys() == COMMANDS.keys() | ELSEWHERE
    Draft202012Validator.check_schema(ANY.schema)
    for kind in LAYOUTS:
        alone = json.loads(Kgctl()("schema", kind).stdout)
        assert alone == {"$schema": DIALECT, **ANY.schema["$defs"][kind]}


def test_an_unknown_kind_is_refused_with_the_known_ones() -> None:
    result = Kgctl()("schema", "nonsense")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "'nonsense' is not one of acl-changes, acls, " in result.stderr


def test_every_command_declares_the_kinds_that_it_shows() -> None:
    declared = {kind for name in ROOT for kind in _kinds(load(name))}
    assert declared <= LAYOUTS.keys()
    shown = {kind for path in SOURCES.rglob("*.py") for kind in re.findall(r'kind="([a-z-]+)"', path.read_text())}
    # `produce` shows no table; a query and the measurements of `pipeline bench` have columns of their own.
    own_columns = {
        "pipeline-bench",
        "pipeline-bench-sources",
        "pipeline-sql",
        "pipeline-sql-tables",
        "store-query",
        "store-tables",
    }
    assert shown - declared <= {"produced", "offset-reset-summary", *own_columns}


def _kinds(command: Any) -> Iterator[str]:
    yield from kinds_of(command) if hasattr(command, "callback") else ()
    for verb in verbs_of(command).values():
        yield from _kinds(verb)
