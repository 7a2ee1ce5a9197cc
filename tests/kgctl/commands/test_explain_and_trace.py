"""--explain names Kafka's commands; --trace shows requests and never what is in them."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.harness.clusters import fresh
from tests.harness.commandline import Kgctl


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("groups list --state Empty --columns group", "kafka-consumer-groups.sh --list --state Empty"),
        ("groups describe G --members", "kafka-consumer-groups.sh --describe --group G --members"),
        ("topics list --exclude-internal", "kafka-topics.sh --list --exclude-internal"),
        ("topics describe G", "kafka-topics.sh --describe --topic G"),
        ("topics describe G --configs", "kafka-configs.sh --describe --entity-type topics --entity-name G"),
        ("topics delete G", "kafka-topics.sh --delete --topic G"),
        ("transactions list", "kafka-transactions.sh list"),
        ("transactions describe G", "kafka-transactions.sh describe --transactional-id G"),
        ("transactions find-hanging --topic G", "kafka-transactions.sh find-hanging --topic G"),
        ("acls list --topic G", "kafka-acls.sh --list --topic G"),
        ("users list G", "kafka-configs.sh --describe --entity-type users --entity-name G"),
        ("consume G --max-messages 1 --until-end", "kafka-console-consumer.sh --topic G --max-messages 1"),
        (
            "acls remove --topic G --allow-principal User:a --operation Read",
            "kafka-acls.sh --remove --topic G --allow-principal User:a --operation Read",
        ),
    ],
)
def test_explain_names_the_command_of_kafkas_tools(kgctl: Kgctl, line: str, expected: str) -> None:
    name = fresh("g with space")
    words = [name if word == "G" else word for word in line.split()]
    plain, explained = kgctl(*words), kgctl(*words, "--explain")
    assert (explained.exit_code, explained.stdout) == (plain.exit_code, plain.stdout)
    tool, *arguments = [name if word == "G" else word for word in expected.split()]
    command = shlex.join([tool, "--bootstrap-server", str(kgctl.bootstrap), *arguments])
    assert f"Kafka's tool: {command}" in explained.stderr.splitlines()
    assert "Kafka's tool" not in plain.stderr


def test_explain_says_if_it_can_name_no_command() -> None:
    for command in ("pipeline list", "context list", "store info /nowhere"):
        shown = Kgctl()("--explain", *command.split()).stderr
        assert shown.endswith("kgctl cannot name a command of Kafka's tools for this.\n") is (command[0] != "s"), (
            command
        )


def events(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_trace_has_each_connection_and_request(kgctl: Kgctl, tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    plain, traced = kgctl("topics", "list"), kgctl("--trace", path, "topics", "list")
    assert (traced.exit_code, traced.stdout, traced.stderr) == (0, plain.stdout, plain.stderr)
    opened, versions, *requests = events(path)
    assert (opened["event"], opened["node"], opened["error"]) == ("open", kgctl.bootstrap, None)
    assert opened["steps"].keys() == {"resolve", "connect"}
    assert opened["ms"] >= opened["steps"]["connect"] >= 0
    assert (versions["event"], versions["api"], versions["correlation_id"]) == ("request", "ApiVersions", 1)
    assert [request["correlation_id"] for request in requests] == list(range(2, 2 + len(requests)))
    assert {"Metadata"} <= {request["api"] for request in requests}
    for request in (versions, *requests):
        assert request["error"] is None
        assert request["ms"] >= 0
        assert min(request["request_bytes"], request["response_bytes"]) > 8


def test_a_readable_trace_goes_to_stderr(kgctl: Kgctl) -> None:
    result = kgctl("topics", "list", "--trace", "-")
    lines = result.stderr.splitlines()
    assert lines[0].split()[:2] == [kgctl.bootstrap, "connection"]
    assert any(line.split()[1] == "Metadata" and line.endswith(" ms") for line in lines[1:])


def test_a_failed_connection_is_in_the_trace(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    assert Kgctl("127.0.0.1:1")("topics", "list", "--trace", path).exit_code == 7
    assert {event["error"] for event in events(path)} == {"UNREACHABLE"}


def test_a_full_disk_ends_the_trace_and_not_the_command(kgctl: Kgctl) -> None:
    plain, traced = kgctl("topics", "list"), kgctl("topics", "list", "--trace", "/dev/full")
    assert (traced.exit_code, traced.stdout) == (0, plain.stdout)
    assert traced.stderr == "Warning: the trace is incomplete: cannot write '/dev/full': No space left on device\n"


def test_a_trace_that_cannot_be_written_is_a_usage_error(kgctl: Kgctl) -> None:
    result = kgctl("topics", "list", "--trace", "/nowhere/trace")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "cannot write '/nowhere/trace': No such file or directory." in result.stderr
