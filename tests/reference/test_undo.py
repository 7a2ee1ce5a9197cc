"""Changes of a real Kafka are kept in the journal, and taken back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.harness.clusters import fresh
from tests.harness.commandline import Kgctl, fill
from tests.harness.reference_kafka import KafkaTools, ReferenceKafka
from tests.harness.running import until
from tests.harness.secured_kafka import AUTHORIZER

SECRET = "listener.name.other.ssl.truststore.password"
SUPER = {"authorizer.class.name": AUTHORIZER, "super.users": "User:ANONYMOUS"}


def test_topics_configs_and_acls_of_kafka_are_taken_back(
    tools: KafkaTools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with ReferenceKafka(SUPER) as kafka:
        kgctl = Kgctl(kafka.bootstrap_servers)
        _topics(kgctl)
        _configs(kgctl)
        _secret(kgctl, tmp_path)
        _acls(kgctl)
        _kafkas_tools(kgctl)


def change(kgctl: Kgctl, *arguments: object) -> dict[str, Any]:
    done = kgctl(*arguments)
    assert done.exit_code == 0, done.output
    entry: dict[str, Any] = Kgctl().rows("journal")[-1]
    assert entry["outcome"] == "done"
    return entry


def undone(kgctl: Kgctl, entry: dict[str, Any]) -> bool:
    """Take the change back; a broker learns of it from its controller a moment after the answer."""
    done = kgctl("undo", entry["id"], "--execute")
    return done.exit_code == 0 and " done " in f"{done.stdout} ".replace("\n", " ")


def topics(kgctl: Kgctl) -> dict[str, int]:
    return {row["topic"]: row["partitions"] for row in kgctl.rows("topics", "list")}


def own_configs(kgctl: Kgctl, *resource: str) -> dict[str, str]:
    rows = kgctl.rows("configs", "describe", *resource)
    return {row["config"]: row["value"] for row in rows if row["source"] in ("topic", "broker (dynamic)")}


def _topics(kgctl: Kgctl) -> None:
    name = fresh("t")
    created = change(kgctl, "topics", "create", name, "--partitions", 2, "--config", "retention.ms=5000")
    fill(kgctl, name, [3])
    refused = kgctl("undo", created["id"], "--execute")
    assert (refused.exit_code, "3 records were written to it since" in refused.stderr) == (6, True), refused.output
    deleted = change(kgctl, "topics", "delete", name, "--execute")
    until(lambda: name not in topics(kgctl))
    until(lambda: undone(kgctl, deleted))
    until(lambda: topics(kgctl).get(name) == 2)
    assert own_configs(kgctl, "topic", name) == {"retention.ms": "5000"}
    # It is another topic now, though it has no records.
    assert "deleted and created again since" in kgctl("undo", created["id"], "--execute").stderr


def _configs(kgctl: Kgctl) -> None:
    name = fresh("t")
    change(kgctl, "topics", "create", name)
    for resource in (("topic", name, "retention.ms=5000"), ("broker", "1", "log.cleaner.threads=2")):
        config, value = resource[2].split("=")
        entry = change(kgctl, "configs", "set", *resource, "--execute")
        until(lambda where=resource[:2], is_=(config, value): is_ in own_configs(kgctl, *where).items())  # type: ignore[misc]
        assert undone(kgctl, entry)
        until(lambda where=resource[:2], name=config: name not in own_configs(kgctl, *where))  # type: ignore[misc]


def _secret(kgctl: Kgctl, folder: Path) -> None:
    entry = change(kgctl, "configs", "set", "broker", "1", f"{SECRET}=hunter2", "--execute")
    (row,) = Kgctl().rows("journal", "show", entry["id"])
    assert row["new_value"] == "***"
    assert b"hunter2" not in b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    until(lambda: SECRET in own_configs(kgctl, "broker", "1"))
    # Whether it has changed since is not known.
    assert kgctl("undo", entry["id"], "--execute").exit_code == 6
    assert kgctl("undo", entry["id"], "--execute", "--force").exit_code == 0
    until(lambda: SECRET not in own_configs(kgctl, "broker", "1"))


def _acls(kgctl: Kgctl) -> None:
    acl = ("--topic", fresh("t"), "--allow-principal", "User:al", "--operation", "Read", "--operation", "Write")
    listing = ("acls", "list", "--principal", "User:al")
    added = change(kgctl, "acls", "add", *acl, "--execute")
    until(lambda: len(kgctl.rows(*listing)) == 2)
    before = kgctl.rows(*listing)
    removed = change(kgctl, "acls", "remove", *acl, "--execute")
    until(lambda: not kgctl.rows(*listing))
    assert undone(kgctl, removed)
    until(lambda: kgctl.rows(*listing) == before)
    assert undone(kgctl, added)
    until(lambda: not kgctl.rows(*listing))


def _kafkas_tools(kgctl: Kgctl) -> None:
    name = fresh("t")
    tool = ("compat", "kafka-topics", "--bootstrap-server", kgctl.bootstrap)
    entry = change(Kgctl(), *tool, "--create", "--topic", name)
    until(lambda: name in topics(kgctl))
    assert undone(kgctl, entry)
    until(lambda: name not in topics(kgctl))
