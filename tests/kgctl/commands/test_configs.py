"""`kgctl configs` on a running cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from broker.protocol.api_keys import APIS
from broker.protocol.messages.describe_configs import DescribeConfigsResponse
from tests.harness.clusters import fresh
from tests.harness.commandline import Kgctl
from tests.harness.running import until
from tests.harness.scripted_node import ScriptedNode, one_partition

DESCRIBE, REPLACING, INCREMENTAL = 32, 33, 44


def value_of(kgctl: Kgctl, kind: str, name: str, config: str) -> Any:
    (row,) = kgctl.rows("configs", "describe", kind, name, "--config", config)
    return row["value"], row["source"]


def becomes(kgctl: Kgctl, kind: str, name: str, config: str, wanted: tuple[str | None, str]) -> None:
    """A broker of Kafka learns of a change from its controller."""
    until(lambda: value_of(kgctl, kind, name, config) == wanted)


@pytest.fixture
def topic(kgctl: Kgctl) -> str:
    name = fresh("t")
    assert kgctl("topics", "create", name).exit_code == 0
    return name


def test_a_config_of_a_topic_is_set_and_unset_after_a_plan(kgctl: Kgctl, topic: str) -> None:
    arguments = ["topic", topic, "retention.ms=5000", "cleanup.policy=compact,delete"]
    planned = kgctl("configs", "set", *arguments)
    assert planned.exit_code == 0
    assert "Dry run" in planned.stderr
    assert value_of(kgctl, "topic", topic, "retention.ms") == ("604800000", "default")
    done = kgctl("configs", "set", *arguments, "--execute", "--explain")
    assert "--add-config 'retention.ms=5000,cleanup.policy=[compact,delete]'" in done.stderr
    becomes(kgctl, "topics", topic, "retention.ms", ("5000", "topic"))
    assert [row["status"] for row in kgctl.rows("configs", "set", *arguments)] == ["same", "same"]
    kgctl.rows("configs", "unset", "topic", topic, "retention.ms", "--execute")
    becomes(kgctl, "topic", topic, "retention.ms", ("604800000", "default"))
    assert value_of(kgctl, "topic", topic, "cleanup.policy") == ("compact,delete", "topic")


def test_of_several_changes_all_are_made_or_none(kgctl: Kgctl, topic: str) -> None:
    for more in ([], ["--execute"]):
        refused = kgctl("configs", "set", "topic", topic, "retention.ms=5000", "max.message.bytes=many", *more)
        assert refused.exit_code == 1
        assert refused.stderr.rstrip().endswith("(INVALID_CONFIG)")
    assert value_of(kgctl, "topic", topic, "retention.ms") == ("604800000", "default")


def test_all_brokers_have_a_default_that_a_broker_inherits(kgctl: Kgctl) -> None:
    assert kgctl("configs", "set", "broker", "default", "log.retention.ms=700000000", "--execute").exit_code == 0
    try:
        becomes(kgctl, "broker", "1", "log.retention.ms", ("700000000", "cluster (dynamic)"))
        (row,) = kgctl.rows("configs", "describe", "broker", "default", "--config", "log.retention.ms")
        assert row["resource"] == "default"
    finally:
        assert kgctl("configs", "unset", "broker", "default", "log.retention.ms", "--execute").exit_code == 0
    until(lambda: value_of(kgctl, "broker", "1", "log.retention.ms")[1] != "cluster (dynamic)")


def test_a_config_that_needs_a_restart_is_refused_as_read_only(kgctl: Kgctl) -> None:
    refused = kgctl("configs", "set", "broker", 1, "broker.id=7", "--execute")
    assert refused.exit_code == 1
    assert "broker 1: broker.id is read-only" in refused.stderr
    rows = kgctl.rows("configs", "describe", "broker", 1, "--all")
    assert {row["config"] for row in rows if row["read_only"]} >= {"broker.id"}


def test_groups_have_configs(kgctl: Kgctl) -> None:
    group = fresh("g")
    assert kgctl("configs", "set", "group", group, "consumer.session.timeout.ms=50000", "--execute").exit_code == 0
    becomes(kgctl, "group", group, "consumer.session.timeout.ms", ("50000", "group"))
    assert group in [row["resource"] for row in kgctl.rows("configs", "describe", "groups")]


def test_client_metrics_have_configs(kgctl: Kgctl) -> None:
    name = fresh("m")
    assert kgctl("configs", "set", "client-metrics", name, "interval.ms=60000", "--execute").exit_code == 0
    becomes(kgctl, "client-metrics", name, "interval.ms", ("60000", "client metrics"))


def test_a_sensitive_value_is_hidden(kgctl: Kgctl) -> None:
    (row,) = kgctl.rows("configs", "describe", "broker", 1, "--config", "ssl.keystore.password")
    assert (row["value"], row["sensitive"]) == (None, True)
    shown = kgctl("configs", "describe", "broker", 1, "--config", "ssl.keystore.password").stdout
    assert "(hidden)" in shown


def test_what_does_not_exist_is_not_found(kgctl: Kgctl, topic: str) -> None:
    absent = fresh("absent")
    assert kgctl("configs", "describe", "topic", absent).exit_code == 5
    assert kgctl("configs", "set", "topic", absent, "retention.ms=1").exit_code == 5
    assert kgctl("configs", "describe", "broker", 77).exit_code == 5
    misspelt = kgctl("configs", "unset", "topic", topic, "retention", "--execute")
    assert (misspelt.exit_code, misspelt.stderr) == (
        5,
        f"Error: topic '{topic}' has no config 'retention'\n",
    )
    assert kgctl("configs", "describe", "topic", topic, "--config", "retention").exit_code == 5
    assert kgctl("configs", "unset", "group", fresh("g"), "consumer.session.timeout").exit_code == 5


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["describe", "user"], "'user' is not one of topic, broker, broker-logger, group, client-metrics"),
        (["set", "broker", "one", "a=b"], "'one' is not the id of a broker, or 'default' for all brokers"),
        (["set", "topic", "t", "a"], "'a' is not NAME=VALUE"),
    ],
)
def test_what_cannot_be_meant_is_a_usage_error(arguments: list[str], sentence: str) -> None:
    refused = Kgctl()("configs", *arguments)
    assert refused.exit_code == 2
    assert sentence in " ".join(refused.stderr.split())


def test_a_cluster_that_could_only_replace_all_configs_is_refused() -> None:
    """AlterConfigs would reset the configs that are not named."""
    offered = {key: (api.versions[0], api.versions[-1]) for key, api in APIS.items() if key != INCREMENTAL}
    node = ScriptedNode(offered=offered)
    result = DescribeConfigsResponse.Result(resource_type=2, resource_name="t", configs=[])
    node.answers[DESCRIBE] = lambda _: DescribeConfigsResponse(results=[result])
    with node.listening() as endpoint:
        one_partition(node, endpoint, "t")
        for arguments in (["configs", "set", "topic", "t", "a=b"], ["topics", "alter", "t", "--config", "a=b"]):
            refused = Kgctl(str(endpoint))(*arguments, "--execute")
            assert refused.exit_code == 1
            assert "the cluster cannot change single configs (IncrementalAlterConfigs, Kafka 2.3)" in refused.stderr
    assert {one.api_key for one in node.received} & {REPLACING, INCREMENTAL} == set()


def test_a_secret_comes_from_a_file_or_stdin_and_is_not_shown(kgctl: Kgctl, tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("from-file\n")
    file.chmod(0o600)
    arguments = ("configs", "set", "broker", "1", "--explain", "--value-file", f"ssl.keystore.password={file}")
    result = kgctl(*arguments, "--value-file", "sasl.jaas.config=-", text="from-stdin")
    for text in (result.stdout, result.stderr, kgctl(*arguments, "-o", "json").stdout):
        assert "from-" not in text
    assert "(hidden)" in result.stdout
    assert "ssl.keystore.password=***" in result.stderr
    assert "Warning" not in result.stderr


def test_a_secret_on_the_command_line_is_a_warning_and_hidden(kgctl: Kgctl) -> None:
    result = kgctl("configs", "set", "broker", "1", "listener.name.x.ssl.key.password=visible", "-o", "json")
    assert "visible" not in result.stdout
    assert "can see listener.name.x.ssl.key.password in the list of processes; give its value with" in result.stderr


def test_a_value_file_sets_what_the_file_says(kgctl: Kgctl, topic: str) -> None:
    assert (
        kgctl("configs", "set", "topic", topic, "--value-file", "retention.ms=-", "--execute", text="5000\n").exit_code
        == 0
    )
    becomes(kgctl, "topic", topic, "retention.ms", ("5000", "topic"))


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ((), "Give CONFIG=VALUE, or --value-file"),
        (("--value-file", "retention.ms"), "is not CONFIG=FILE"),
        (("--value-file", "retention.ms=/absent"), "cannot read /absent: No such file"),
        (("retention.ms=1", "--value-file", "retention.ms=-"), "retention.ms has two values"),
        (("--value-file", "a=-", "--value-file", "b=-"), "stdin can be the value of one config only"),
    ],
)
def test_a_wrong_value_file_is_a_usage_error(arguments: tuple[str, ...], reason: str) -> None:
    refused = Kgctl("127.0.0.1:1")("configs", "set", "topic", "orders", *arguments)
    assert refused.exit_code == 2
    assert reason in refused.stderr
