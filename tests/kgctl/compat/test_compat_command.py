"""`kgctl compat`: an exit code for each kind of failure, contexts, consent, and the name of the program."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness.clusters import Cluster, fresh
from tests.harness.commandline import Kgctl, fill, member_of


@pytest.mark.parametrize(
    ("arguments", "code", "kafkas"),
    [
        (["--describe", "--group", "absent"], 5, 0),
        (["--delete", "--group", "absent"], 5, 0),
        (["--delete", "--group", "LIVE"], 6, 0),
        (["--delete", "--group", "LIVE", "--group", "absent"], 1, 0),
        (["--reset-offsets", "--group", "LIVE", "--all-topics", "--to-latest", "--dry-run"], 6, 0),
        (["--delete-offsets", "--group", "LIVE", "--topic", "TOPIC"], 6, 0),
        (["--reset-offsets", "--group", "absent", "--topic", "absent", "--to-latest", "--dry-run"], 5, 0),
        (["--describe"], 1, 1),
        (["--list"], 0, 0),
    ],
)
def test_the_exit_code_names_the_kind_of_failure_or_is_kafkas(
    our_cluster: Cluster, arguments: list[str], code: int, kafkas: int
) -> None:
    kgctl, topic, live = Kgctl(our_cluster.bootstrap_servers), fresh("t"), fresh("g")
    kgctl("topics", "create", topic)
    fill(kgctl, topic, [3])
    with member_of(kgctl, live, {topic: [0]}):
        words = [{"LIVE": live, "TOPIC": topic}.get(word, word) for word in arguments]
        server = ("--bootstrap-server", our_cluster.bootstrap_servers)
        for option, expected in (([], code), (["--ak-exit-codes"], kafkas)):
            done = Kgctl()("compat", *option, "kafka-consumer-groups.sh", *server, *words)
            assert done.exit_code == expected, done.output


def test_a_link_with_the_name_of_a_tool_is_the_tool(our_cluster: Cluster, tmp_path: Path) -> None:
    program = tmp_path / "kafka-consumer-groups.sh"
    program.write_text(f"#!{sys.executable}\nfrom kgctl.__main__ import main\nmain()\n")
    program.chmod(0o700)
    command = [program, "--bootstrap-server", our_cluster.bootstrap_servers, "--describe", "--group", fresh("absent")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 5
    assert done.stdout.startswith("\nError: Executing consumer group command failed due to ")


def test_a_properties_file_says_where_and_how_to_connect(our_cluster: Cluster, tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("security.protocol=PLAINTEXT\nclient.id=scripts\n")
    server = ("--bootstrap-server", our_cluster.bootstrap_servers)
    done = Kgctl()("compat", "kafka-consumer-groups", *server, "--command-config", file, "--list", "--state")
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("GROUP ")


def test_an_unreachable_cluster_has_its_own_exit_code() -> None:
    words = ("--bootstrap-server", "127.0.0.1:1", "--timeout", 300)
    done = Kgctl()("compat", "kafka-consumer-groups", *words, "--describe", "--group", "g")
    assert done.exit_code == 7
    assert "failed due to org.apache.kafka.common.errors.TimeoutException: Timed out waiting for a node" in done.stdout
    done = Kgctl()("compat", "kafka-consumer-groups", *words, "--list")
    assert "org.apache.kafka.common.KafkaException: Failed to find brokers to send ListGroups\n" in done.stdout


@pytest.mark.parametrize(
    ("regex", "is_valid"),
    [
        ("orders-.*", True),
        (r"\Qa.b\E\z", True),
        ("(orders", False),
        ("[a-", False),
        ("*", False),
        ("(?=a)", False),
        ("a++", False),
        ("a{1001}", False),
    ],
)
def test_a_regular_expression_is_checked_without_a_cluster(regex: str, is_valid: bool) -> None:
    done = Kgctl()("compat", "kafka-consumer-groups", "--validate-regex", regex)
    assert done.exit_code == int(not is_valid)
    assert done.stdout.startswith(f"The regular expression `{regex}` is {'valid' if is_valid else 'invalid: '}")


def test_an_unknown_tool_or_dialect_is_a_usage_error() -> None:
    done = Kgctl()("compat", "kafka-mirrors", "--list")
    assert (done.exit_code, "'kafka-mirrors' is not one of kafka-consumer-groups" in done.stderr) == (2, True)
    done = Kgctl()("compat", "--dialect", "2.8", "kafka-consumer-groups", "--list")
    assert (done.exit_code, "'2.8' is not one of 3.9, 4.1" in done.stderr) == (2, True)
