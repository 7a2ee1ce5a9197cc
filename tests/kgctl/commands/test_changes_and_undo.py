"""Changes of topics, configs, quotas, records, users, ACLs and transactions: each is in the journal, and undo does what it can."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from broker.protocol.errors import ErrorCode
from broker.protocol.messages.create_topics import CreateTopicsResponse
from broker.protocol.messages.describe_configs import DescribeConfigsResponse
from broker.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsResponse
from broker.protocol.messages.metadata import MetadataRequest, MetadataResponse
from broker.protocol.wire_types import Message
from tests.harness.clusters import fresh
from tests.harness.commandline import Kgctl, fill
from tests.harness.feeding import METADATA
from tests.harness.running import RunningBroker
from tests.harness.scripted_node import ScriptedNode, one_partition

CREATE_TOPICS, DESCRIBE, ALTER = 19, 32, 44


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    options = {"authorizer_class_name": "StandardAuthorizer", "super_users": "User:ANONYMOUS"}
    with RunningBroker(tmp_path_factory.mktemp("changes") / "data", **options) as running:
        yield "{}:{}".format(*running.address)


@pytest.fixture
def kgctl(address: str) -> Kgctl:
    return Kgctl(address)


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A journal for each test."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "kgctl" / "journal"


@pytest.fixture
def topic(kgctl: Kgctl) -> str:
    name = fresh("t")
    assert kgctl("topics", "create", name, "--partitions", 2, "--no-journal").exit_code == 0
    return name


def change(kgctl: Kgctl, *arguments: object, text: str | None = None) -> dict[str, Any]:
    """Make a change; its row in the journal."""
    done = kgctl(*arguments, text=text)
    assert done.exit_code == 0, done.output
    rows: list[dict[str, Any]] = Kgctl().rows("journal")
    return rows[-1]


def undo(kgctl: Kgctl, *arguments: object) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = kgctl.rows("undo", *arguments, "--execute")
    return rows


def topics(kgctl: Kgctl) -> dict[str, int]:
    return {row["topic"]: row["partitions"] for row in kgctl.rows("topics", "list")}


def own_configs(kgctl: Kgctl, kind: str, name: str) -> dict[str, str]:
    rows = kgctl.rows("configs", "describe", kind, name)
    return {row["config"]: row["value"] for row in rows if row["source"] not in ("default", "broker (static)")}


def test_a_created_topic_is_deleted_again_unless_it_has_records(kgctl: Kgctl) -> None:
    names = [fresh("new"), fresh("new")]
    entry = change(kgctl, "topics", "create", *names)
    assert (entry["verb"], entry["outcome"]) == ("topics create", "done")
    assert entry["items"] == [f"topic {name}" for name in names]
    fill(kgctl, names[1], [3])
    refused = kgctl("undo", "--execute")
    assert (refused.exit_code, "3 records were written to it since" in refused.stderr) == (6, True), refused.output
    assert set(names) <= topics(kgctl).keys()
    assert [row["status"] for row in undo(kgctl, "--force")] == ["done", "done"]
    assert not set(names) & topics(kgctl).keys()


def test_a_topic_of_the_same_name_that_was_created_since_is_left_alone(kgctl: Kgctl) -> None:
    name = fresh("new")
    entry = change(kgctl, "topics", "create", name)
    for verb in (["delete", name, "--execute"], ["create", name]):
        assert kgctl("topics", *verb, "--no-journal").exit_code == 0
    refused = kgctl("undo", entry["id"], "--execute")
    assert (refused.exit_code, "deleted and created again since" in refused.stderr) == (6, True)


def test_a_topic_that_existed_already_survives_the_undo_of_its_creation(kgctl: Kgctl, topic: str) -> None:
    name = fresh("new")
    assert kgctl("topics", "create", topic, name).exit_code == 4
    (entry,) = Kgctl().rows("journal")
    assert entry["outcome"] == "partly failed"
    shown = {row["name"]: row["status"] for row in Kgctl().rows("journal", "show", entry["id"])}
    assert shown[f"topic {name}"] == "done"
    assert shown[f"topic {topic}"].startswith("failed: ")
    assert [row["name"] for row in undo(kgctl)] == [f"topic {name}"]
    assert topic in topics(kgctl)


def test_a_deleted_topic_comes_back_empty_and_that_is_said(kgctl: Kgctl, topic: str) -> None:
    assert kgctl("configs", "set", "topic", topic, "retention.ms=5000", "--execute", "--no-journal").exit_code == 0
    fill(kgctl, topic, [3])
    entry = change(kgctl, "topics", "delete", topic, "--execute")
    (row,) = Kgctl().rows("journal", "show", entry["id"])
    assert row["note"] == "partitions=2, replicas=1, retention.ms=5000"
    planned = kgctl("undo", entry["id"])
    assert "created again empty" in planned.stdout.replace("\n", " ") + kgctl("undo", "-o", "json").stdout
    assert topic not in topics(kgctl)
    assert undo(kgctl, entry["id"])[0]["status"] == "done"
    assert topics(kgctl)[topic] == 2
    assert own_configs(kgctl, "topic", topic) == {"retention.ms": "5000"}
    ends = kgctl.rows("topics", "describe", topic)
    assert {row["log_end_offset"] for row in ends} == {0}
    # An undo is a change, too.
    assert undo(kgctl, Kgctl().rows("journal")[-1]["id"])[0]["status"] == "done"
    assert topic not in topics(kgctl)


def test_altered_configs_come_back_and_added_partitions_stay(kgctl: Kgctl, topic: str) -> None:
    arguments = ["topics", "alter", topic, "--partitions", 4, "--config", "retention.ms=5000", "--execute"]
    entry = change(kgctl, *arguments)
    rows = {row["setting"]: row for row in undo(kgctl, entry["id"])}
    assert rows["retention.ms"]["status"] == "done"
    assert rows["partitions"]["status"] == "not undoable"
    assert "Kafka cannot remove partitions" in rows["partitions"]["note"]
    assert own_configs(kgctl, "topic", topic) == {}
    assert topics(kgctl)[topic] == 4


@pytest.mark.parametrize(
    ("kind", "name", "config", "value"),
    [
        ("topic", None, "retention.ms", "5000"),
        ("broker", "default", "log.retention.ms", "700000000"),
        ("group", "g", "consumer.session.timeout.ms", "50000"),
    ],
)
def test_configs_get_the_value_that_was_set_before_or_none(
    kgctl: Kgctl, topic: str, kind: str, name: str | None, config: str, value: str
) -> None:
    where = [kind, name or topic]
    first = change(kgctl, "configs", "set", *where, f"{config}={value}", "--execute")
    second = change(kgctl, "configs", "unset", *where, config, "--execute")
    assert undo(kgctl, second["id"])[0]["status"] == "done"
    assert own_configs(kgctl, *where)[config] == value
    assert undo(kgctl, first["id"])[0]["status"] == "done"
    assert config not in own_configs(kgctl, *where)
    assert "Everything is as it was" in kgctl("undo", first["id"]).stderr


def test_a_config_that_changed_since_is_refused_without_force(kgctl: Kgctl, topic: str) -> None:
    entry = change(kgctl, "configs", "set", "topic", topic, "retention.ms=5000", "segment.ms=9000", "--execute")
    assert kgctl("configs", "set", "topic", topic, "retention.ms=7", "--execute", "--no-journal").exit_code == 0
    refused = kgctl("undo", entry["id"], "--execute")
    assert (refused.exit_code, "it is '7' now, not '5000'" in refused.stderr) == (6, True), refused.output
    assert own_configs(kgctl, "topic", topic) == {"retention.ms": "7", "segment.ms": "9000"}
    assert len(undo(kgctl, entry["id"], "--force")) == 2
    assert own_configs(kgctl, "topic", topic) == {}


def test_quotas_are_taken_back(kgctl: Kgctl) -> None:
    user = ["--user", fresh("alice")]
    kgctl("quotas", "set", *user, "producer_byte_rate=1000", "--execute", "--no-journal")
    first = change(kgctl, "quotas", "set", *user, "producer_byte_rate=2000", "consumer_byte_rate=5", "--execute")
    second = change(kgctl, "quotas", "remove", *user, "--execute")
    assert {row["status"] for row in undo(kgctl, second["id"])} == {"done"}
    assert {row["status"] for row in undo(kgctl, first["id"])} == {"done"}
    rows = kgctl.rows("quotas", "list", *user)
    assert [(row["quota"], row["value"]) for row in rows] == [("producer_byte_rate", 1000.0)]


def test_deleted_records_are_listed_and_the_undo_says_what_to_do(kgctl: Kgctl, topic: str) -> None:
    fill(kgctl, topic, [10])
    first = change(kgctl, "configs", "set", "topic", topic, "retention.ms=500000000", "--execute")
    entry = change(kgctl, "topics", "delete-records", f"{topic}:0:4", "--execute")
    (row,) = Kgctl().rows("journal", "show", entry["id"])
    assert (row["old_value"], row["new_value"], row["status"]) == ("0", "4", "done")
    refused = kgctl("undo", entry["id"], "--execute")
    assert refused.exit_code == 6
    assert "deleted records cannot be restored; the log started at 0" in refused.stderr
    # Without an ID, undo passes over it and says so.
    done = kgctl("undo", "--execute")
    assert done.exit_code == 0
    assert f"Skipped change {entry['id']}, which cannot be undone: kgctl topics delete-records" in done.stderr
    assert Kgctl().rows("journal")[-1]["undoes"] == first["id"]


def test_a_new_user_is_deleted_again_and_passwords_are_never_kept(kgctl: Kgctl, state: Path) -> None:
    user = fresh("u")
    first = change(kgctl, "users", "set-password", user, text="wonderland\n")
    again = change(kgctl, "users", "set-password", user, text="looking-glass\n")
    refused = kgctl("undo", again["id"], "--execute")
    assert refused.exit_code == 6
    assert f"kgctl users set-password {user} --mechanism SCRAM-SHA-512" in refused.stderr
    assert undo(kgctl, first["id"])[0]["status"] == "done"
    assert user not in {row["user"] for row in kgctl.rows("users", "list")}
    kgctl("users", "set-password", user, "--no-journal", text="x\n")
    entry = change(kgctl, "users", "delete", user, "--execute")
    assert kgctl("undo", entry["id"]).exit_code == 6
    kept = b"".join(path.read_bytes() for path in state.rglob("*") if path.is_file())
    assert b"wonderland" not in kept
    assert b"looking" not in kept
    assert {path.stat().st_mode & 0o777 for path in state.rglob("*") if path.is_file()} == {0o600}


def test_acls_are_added_and_removed_again(kgctl: Kgctl) -> None:
    which = ["--topic", fresh("t"), "--allow-principal", "User:al", "--operation"]
    listing = ("acls", "list", "--principal", "User:al")
    first = change(kgctl, "acls", "add", *which, "Read", "--operation", "Write", "--execute")
    before = kgctl.rows(*listing)
    second = change(kgctl, "acls", "remove", *which, "Read", "--execute")
    assert len(kgctl.rows(*listing)) == 1
    assert [row["status"] for row in undo(kgctl, second["id"])] == ["done"]
    assert kgctl.rows(*listing) == before
    assert [row["status"] for row in undo(kgctl, first["id"])] == ["done", "done"]
    assert kgctl.rows(*listing) == []


def test_an_aborted_transaction_is_listed(kgctl: Kgctl, topic: str) -> None:
    entry = change(kgctl, "transactions", "abort", make_transaction(kgctl, topic), "--execute")
    assert (entry["verb"], entry["outcome"]) == ("transactions abort", "done")
    refused = kgctl("undo", entry["id"], "--execute")
    assert (refused.exit_code, "cannot be continued" in refused.stderr) == (6, True)


def make_transaction(kgctl: Kgctl, topic: str) -> str:
    from confluent_kafka import Producer

    name = fresh("tx")
    producer = Producer({"bootstrap.servers": kgctl.bootstrap, "transactional.id": name})
    producer.init_transactions(20)
    producer.begin_transaction()
    producer.produce(topic, b"x")
    producer.flush(20)
    return name


def test_a_journal_that_cannot_be_written_refuses_every_change_before_it_happens(
    kgctl: Kgctl, topic: str, state: Path
) -> None:
    state.parent.mkdir(parents=True)
    state.write_text("not a folder")
    new = fresh("new")
    for command in (
        ["topics", "create", new],
        ["topics", "delete", topic, "--execute"],
        ["topics", "alter", topic, "--partitions", 3, "--execute"],
        ["configs", "set", "topic", topic, "retention.ms=1", "--execute"],
        ["quotas", "set", "--user", "x", "producer_byte_rate=1", "--execute"],
        ["acls", "add", "--topic", topic, "--allow-principal", "User:al", "--execute"],
        ["compat", "kafka-topics", "--delete", "--topic", topic, "--bootstrap-server", kgctl.bootstrap],
    ):
        done = kgctl(*command) if command[0] != "compat" else Kgctl()(*command)
        assert done.exit_code == 1, done.output
        assert "nothing was changed" in done.stderr
        assert "--no-journal" in done.stderr
    assert topics(kgctl)[topic] == 2
    assert new not in topics(kgctl)
    assert own_configs(kgctl, "topic", topic) == {}


def tool(kgctl: Kgctl, name: str, *arguments: object) -> dict[str, Any]:
    """Run one of Kafka's tools; its row in the journal."""
    return change(Kgctl(), "compat", name, "--bootstrap-server", kgctl.bootstrap, *arguments)


def test_changes_of_kafkas_tools_are_kept_and_undone(kgctl: Kgctl) -> None:
    name, group = fresh("t"), fresh("g")
    created = tool(kgctl, "kafka-topics", "--create", "--topic", name, "--partitions", 2)
    assert (created["verb"], created["items"], created["outcome"]) == ("topics create", [f"topic {name}"], "done")
    assert created["command"].startswith("kgctl compat kafka-topics --bootstrap-server ")
    grown = tool(kgctl, "kafka-topics", "--alter", "--topic", name, "--partitions", 3)
    (row,) = Kgctl().rows("journal", "show", grown["id"])
    assert (row["old_value"], row["new_value"], row["status"]) == ("2", "3", "done")
    what = ("--entity-type", "topics", "--entity-name", name)
    altered = tool(kgctl, "kafka-configs", "--alter", *what, "--add-config", "retention.ms=5000")
    assert [row["status"] for row in undo(kgctl, altered["id"])] == ["done"]
    assert own_configs(kgctl, "topic", name) == {}
    kgctl.commit(group, name, p0=0)
    fill(kgctl, name, [5])
    where = ("--group", group, "--topic", name)
    reset = tool(kgctl, "kafka-consumer-groups", "--reset-offsets", *where, "--to-latest", "--execute")
    assert (reset["verb"], reset["groups"]) == ("reset-offsets", [group])
    undo(kgctl, reset["id"])
    offsets = {row["partition"]: row["current_offset"] for row in kgctl.rows("groups", "describe", group)}
    assert offsets == {0: 0}
    for action in (("--delete-offsets", "--topic", name), ("--delete",)):
        gone = tool(kgctl, "kafka-consumer-groups", *action, "--group", group)
        assert [row["status"] for row in undo(kgctl, gone["id"])] == ["done"]
    deleted = tool(kgctl, "kafka-topics", "--delete", "--topic", name)
    assert [row["status"] for row in undo(kgctl, deleted["id"])] == ["done"]
    assert topics(kgctl)[name] == 3


def test_acls_that_kafkas_tool_adds_and_removes_are_undone(kgctl: Kgctl) -> None:
    acl = ("--topic", fresh("t"), "--allow-principal", "User:al")
    listing = ("acls", "list", "--principal", "User:al")
    added = tool(kgctl, "kafka-acls", "--add", *acl, "--operation", "Read", "--operation", "Write")
    removed = tool(kgctl, "kafka-acls", "--remove", *acl, "--operation", "Read", "--force")
    assert len(removed["items"]) == 1
    assert [row["status"] for row in undo(kgctl, removed["id"])] == ["done"]
    assert len(kgctl.rows(*listing)) == 2
    assert [row["status"] for row in undo(kgctl, added["id"])] == ["done", "done"]
    assert kgctl.rows(*listing) == []


def test_what_a_tool_cannot_change_is_in_the_journal_as_failed(kgctl: Kgctl, topic: str) -> None:
    done = Kgctl()("compat", "kafka-topics", "--bootstrap-server", kgctl.bootstrap, "--create", "--topic", topic)
    assert done.exit_code == 6
    (entry,) = Kgctl().rows("journal")
    assert entry["outcome"] == "failed"
    assert kgctl("undo").exit_code == 5
    assert "nothing left to take back" in kgctl("undo", entry["id"], "--execute").stderr


def test_a_topic_that_is_shown_a_moment_after_its_creation_is_kept_with_its_id(state: Path) -> None:
    node = ScriptedNode()
    created = CreateTopicsResponse(
        topics=[CreateTopicsResponse.Topic(name="t", num_partitions=1, replication_factor=1)]
    )
    node.answers[CREATE_TOPICS] = lambda _: created
    node.answers[DESCRIBE] = lambda _: DescribeConfigsResponse(
        results=[DescribeConfigsResponse.Result(resource_type=2, resource_name="t", configs=[])]
    )
    with node.listening() as endpoint:
        one_partition(node, endpoint, "t")
        of_t, asked = node.answers[METADATA], list[bool]()

        def metadata(request: MetadataRequest) -> Message:
            """The topic is there from the fourth question about it on: the first comes before the change."""
            answer = of_t(request)
            assert isinstance(answer, MetadataResponse)
            asked.extend([True] * bool(request.topics))
            answer.topics[0].topic_id, answer.controller_id = bytes(range(16)), 0
            if request.topics and len(asked) < 4:
                missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                answer.topics = [MetadataResponse.Topic(name="t", error_code=missing, partitions=[])]
            return answer

        node.answers[METADATA] = metadata
        assert (
            Kgctl()("compat", "kafka-topics", "--bootstrap-server", str(endpoint), "--create", "--topic", "t").exit_code
            == 0
        )
    kept = b"".join(path.read_bytes() for path in state.rglob("*") if path.is_file())
    assert b"00010203-0405-0607-0809-0a0b0c0d0e0f" in kept
    assert len(asked) == 4


def test_a_lost_answer_is_unknown_and_a_sensitive_value_is_not_kept(state: Path) -> None:
    node = ScriptedNode()
    config = DescribeConfigsResponse.Config(
        name="a", value=None, config_source=1, is_sensitive=True, read_only=False, synonyms=[]
    )
    result = DescribeConfigsResponse.Result(resource_type=2, resource_name="t", configs=[config])
    node.answers[DESCRIBE] = lambda _: DescribeConfigsResponse(results=[result])
    checked = IncrementalAlterConfigsResponse.Response(resource_type=2, resource_name="t")
    # The change itself is not answered: the connection ends.
    node.answers[ALTER] = lambda request: (  # type: ignore[assignment, return-value]
        IncrementalAlterConfigsResponse(responses=[checked]) if request.validate_only else None
    )
    with node.listening() as endpoint:
        one_partition(node, endpoint, "t")
        ours = Kgctl(str(endpoint))
        assert ours("configs", "set", "topic", "t", "a=hunter2", "--execute", "--timeout", 3).exit_code != 0
        (entry,) = Kgctl().rows("journal")
        assert entry["outcome"] == "unknown"
        (row,) = Kgctl().rows("journal", "show", entry["id"])
        assert (row["old_value"], row["new_value"], row["status"]) == ("***", "***", "unknown")
        refused = ours("undo", entry["id"], "--execute")
        assert refused.exit_code == 6
        assert "was not kept: set it with `kgctl configs set topic t a=...`" in refused.stderr
    kept = b"".join(path.read_bytes() for path in state.rglob("*") if path.is_file())
    assert b"kgctl configs set topic t" in kept
    assert b"hunter2" not in kept


KILLED = """
import os, sys
from kgctl.client.admin.admin import Admin
from kgctl.journal.journal import Begun
def die(*_, **__): os.kill(os.getpid(), 9)
{patch}
from kgctl.app import app
app(sys.argv[1:])
"""


@pytest.mark.parametrize(
    ("patch", "exists", "says"),
    [
        ("Admin.create_topics = die", False, "Everything is as it was before the change"),
        ("Begun.correct = die", True, "the journal does not have its id, so another command may have created it"),
        ("Begun.end = die", True, None),
    ],
)
def test_whatever_moment_a_creation_is_killed_at_undo_deletes_only_what_it_created(
    kgctl: Kgctl, patch: str, exists: bool, says: str | None
) -> None:
    name = fresh("t")
    command = [sys.executable, "-c", KILLED.format(patch=patch), "topics", "create", name]
    done = subprocess.run([*command, "--bootstrap", kgctl.bootstrap], timeout=60)
    assert done.returncode == -9
    assert (name in topics(kgctl)) is exists
    (entry,) = Kgctl().rows("journal")
    assert entry["outcome"] == "unfinished"
    assert [row["status"] for row in Kgctl().rows("journal", "show", entry["id"])] == ["unknown"]
    undone = kgctl("undo", "--execute")
    assert (says or "") in undone.stderr
    if exists and says:
        assert name in topics(kgctl)
        undo(kgctl, "--force")
    assert name not in topics(kgctl)
