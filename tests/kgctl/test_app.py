"""The root of the command line: help, options anywhere, an exit code for each kind of failure."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import pytest
import typer
from typer.testing import CliRunner

from broker.local import LocalBroker
from kgctl.app import COMMANDS, app, load, report
from kgctl.client.net.errors import (
    BadValue,
    BrokerError,
    KgctlError,
    NotFound,
    NotKafka,
    Precondition,
    TimedOut,
    Unreachable,
    Unsupported,
)
from kgctl.commands.shared.loading import verbs_of
from kgctl.commands.shared.options import parse_seconds
from kgctl.commands.shared.settings import Settings
from tests.harness.clusters import Cluster, fresh
from tests.harness.commandline import Kgctl
from tests.harness.listeners import ApiVersionsThenSilence, listening, wait_for_the_end


def help_pages() -> list[list[str]]:
    return [[], *([name] for name in COMMANDS), *([name, verb] for name in COMMANDS for verb in verbs_of(load(name)))]


def closed_port() -> str:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"127.0.0.1:{server.getsockname()[1]}"


# --- help ---


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    """The help of each command by its command line."""
    found = {}
    for arguments in help_pages():
        result = Kgctl()(*arguments, "-h")
        assert (result.exit_code, result.stderr) == (0, ""), (arguments, result.exception)
        found[" ".join(["kgctl", *arguments])] = result.stdout
    return found


def test_every_command_takes_h_for_help_and_shows_the_global_options_in_a_panel(pages: dict[str, str]) -> None:
    for command, page in pages.items():
        result = Kgctl()(*command.split()[1:], "--help")
        assert (result.exit_code, result.stdout) == (0, page), command
        own, _, panel = page.partition("\nGlobal options:\n")
        lines = panel.split("\n\n")[0].strip().splitlines()
        assert lines[-1].split()[:2] == ["-h,", "--help"], command
        assert len(lines) <= 10, command
        assert "--bootstrap" not in own, command


def test_every_command_shows_examples(pages: dict[str, str]) -> None:
    for command, page in pages.items():
        assert "\nCommands:\n" in page or f"    {command}" in page.partition("Examples:")[2], command


def test_help_fits_eighty_columns(pages: dict[str, str]) -> None:
    for command, page in pages.items():
        lines = page.splitlines()
        assert max(map(len, lines)) <= 80, command
        assert not [line for line in lines if line.endswith("...") and not line.startswith("Usage:")], command


def test_the_root_lists_a_command_with_the_beginning_of_its_own_help() -> None:
    for name, entry in COMMANDS.items():
        assert " ".join(load(name).help.split()).startswith(entry.help.rstrip(".")), name


def test_a_command_lists_its_verbs_with_the_beginning_of_their_own_help() -> None:
    for name in COMMANDS:
        command = load(name)
        for verb, loaded in verbs_of(command).items():
            listed = " ".join(command.commands[verb].help.split()).rstrip(".")
            assert " ".join(loaded.help.split()).startswith(listed), (name, verb)


def test_help_loads_nothing_that_it_does_not_need() -> None:
    watch = (
        "import sys; from kgctl.app import app\n"
        "try: app(['--help'])\n"
        "except SystemExit: pass\n"
        "sys.stderr.write(' '.join(sys.modules))"
    )
    loaded = set(
        subprocess.run([sys.executable, "-c", watch], capture_output=True, text=True, check=True).stderr.split()
    )
    assert "kgctl.app" in loaded
    for name in (
        "rich",
        "textual",
        "asyncio",
        "yaml",
        "kgctl.client.admin.admin",
        "kgctl.commands.groups.app",
        "kgctl.contexts.target",
        "broker.protocol.codec",
        "tomllib",
        "tomlkit",
    ):
        assert name not in loaded, name


def test_an_answer_in_a_table_needs_no_rich_and_no_asyncio() -> None:
    with LocalBroker() as broker:
        kgctl = Kgctl(broker.bootstrap_servers)
        assert kgctl("topics", "create", "orders").exit_code == 0
        kgctl.commit("billing", "orders", p0=0)
        watch = (
            "import sys; from kgctl.app import app\n"
            f"try: app(['groups', 'list', '--bootstrap', '{broker.bootstrap_servers}'])\n"
            "except SystemExit as end: assert not end.code\n"
            "sys.stderr.write(' '.join(sys.modules))"
        )
        ended = subprocess.run([sys.executable, "-c", watch], capture_output=True, text=True, check=True)
    assert "billing" in ended.stdout
    loaded = set(ended.stderr.split())
    assert not loaded & {
        "rich",
        "textual",
        "asyncio",
        "yaml",
        "tomllib",
        "tomlkit",
        "ssl",
        "tempfile",
        "kgctl.client.admin.acls",
        "kgctl.client.admin.users",
        "kgctl.client.admin.topics",
        "kgctl.client.admin.removals",
        "kgctl.client.admin.reset",
        "kgctl.client.admin.history",
        "kgctl.contexts.context_file",
        "kgctl.model.changes",
        "kgctl.model.store",
        "kgctl.model.acls",
        "kgctl.render.change_layouts",
        "kgctl.render.topic_layouts",
        "encodings.idna",
    }
    assert len([name for name in loaded if name.split(".")[0] in ("kgctl", "broker")]) <= 140


# --- options ---


@pytest.mark.parametrize(
    "arguments",
    [
        ["--bootstrap", "@", "-o", "json", "groups", "list"],
        ["groups", "--bootstrap", "@", "--output", "json", "list"],
        ["groups", "list", "--bootstrap", "@", "-o", "json"],
        ["-o", "json", "groups", "list", "--bootstrap-server", "@"],
        ["--bootstrap", "nowhere:1", "-o", "csv", "groups", "list", "--bootstrap", "@", "-o", "json"],
    ],
)
def test_options_may_precede_or_follow_the_arguments_and_the_last_one_wins(
    our_cluster: Cluster, arguments: list[str]
) -> None:
    result = Kgctl()(*[our_cluster.bootstrap_servers if argument == "@" else argument for argument in arguments])
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["kind"] == "groups"


def test_a_bad_address_from_the_environment_names_its_variable() -> None:
    result = CliRunner().invoke(app, ["topics", "list"], env={"KGCTL_BOOTSTRAP": "host:port"})
    assert result.exit_code == 2
    assert "KGCTL_BOOTSTRAP: 'host:port' is not an address" in result.stderr


def test_the_environment_names_the_cluster_unless_an_option_does(our_cluster: Cluster) -> None:
    def run(environment: str, *arguments: str) -> int:
        return CliRunner().invoke(app, ["groups", "list", *arguments], env={"KGCTL_BOOTSTRAP": environment}).exit_code

    assert run(our_cluster.bootstrap_servers) == 0
    assert run(closed_port()) == 7
    assert run(closed_port(), "--bootstrap", our_cluster.bootstrap_servers) == 0


@pytest.mark.parametrize("output", ["table", "json", "yaml", "csv"])
def test_every_output_is_written_to_stdout_alone(our_cluster: Cluster, output: str) -> None:
    result = Kgctl(our_cluster.bootstrap_servers)("topics", "list", "-o", output)
    assert (result.exit_code, result.stderr) == (0, "")
    assert "__consumer_offsets" in result.stdout


@pytest.mark.parametrize("arguments", [["--show-completion", "zsh"], ["--show-completion"], ["--show-completion=zsh"]])
def test_a_completion_script_is_for_the_named_shell_or_the_users(
    monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    monkeypatch.setenv("SHELL", "/usr/bin/zsh")
    result = Kgctl()(*arguments)
    assert result.exit_code == 0
    assert result.stdout.startswith("#compdef kgctl\n")


def test_a_completion_script_gets_the_names_of_commands() -> None:
    environment = {"_KGCTL_COMPLETE": "complete_bash", "COMP_WORDS": "kgctl groups del", "COMP_CWORD": "2"}
    result = CliRunner().invoke(app, [], env=environment, prog_name="kgctl")
    assert result.stdout.split() == ["delete-offsets", "delete"]


# --- exit codes ---


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["groops"], "No such command 'groops'. Did you mean 'groups'?"),
        (["groups", "lst"], "Did you mean 'list'?"),
        (["groups", "--describe"], "It is a command: `kgctl groups describe`."),
        (["groups", "delete", "g", "--dry-run", "--execute"], "Give --dry-run or --execute, not both."),
        (["groups", "describe", "g", "--all-groups"], "Give GROUP or --all, not both"),
        (["groups", "describe", "--group"], "No such option: --group"),
        (["groups", "list", "--stat", "Stable"], "No such option: --stat (Possible options: --state)"),
        (["consume", "t", "--max", "5"], "No such option: --max (Possible options: --max-messages)"),
        (["groups", "list", "--sampel", "5s"], "No such option: --sampel (Possible options: "),
        (["--show-completion", "sh"], "'sh' is not one of bash, zsh, fish"),
        (["--show-completion"], "$SHELL is 'dash'; name one of bash, zsh, fish, powershell, pwsh"),
        (["groups", "list", "--state", "Stabel"], "'Stabel' is not one of PreparingRebalance"),
        (["groups", "list", "-o", "xml"], "'xml' is not one of table, wide, name, json, jsonl"),
        (["groups", "list", "--timeout", "0"], "'0' is not a number of seconds above 0"),
        (["groups", "list", "--timeout", "nan"], "'nan' is not a number of seconds above 0"),
        (["groups", "describe"], "Name groups, or give --all"),
        (["groups", "describe", "g", "--all"], "Give GROUP or --all, not both"),
        (["groups", "describe", "g", "--members", "--state"], "Give --members or --state, not both"),
        (["groups", "describe", "g", "--members", "--state"], "'--members', '--state'"),
        (["groups", "describe", ""], "an empty name"),
        (["groups", "describe", "g", ""], "an empty name"),
        (["groups", "delete", "g", ""], "an empty name"),
        (["groups", "remove-members", "", "--all"], "an empty name"),
        (["groups", "reset-offsets", "", "--all-topics", "--to-latest"], "an empty name"),
        (["groups", "delete-offsets", "", "--all-topics"], "an empty name"),
        (["consume", "t", "--group", ""], "an empty name"),
        (["groups", "remove-members", "g"], "Error: Name members with --member, --instance or --host, or give --all"),
        (["groups", "remove-members", "g", "--all", "--member", "m"], "Give --all or --member, not both"),
        (["groups", "remove-members", "g", "--all", "--instance", "i"], "Give --all or --instance, not both"),
        (["groups", "reset-offsets", "g", "--all-topics", "--to-latest", "--export", "-o", "json"], "exported as CSV"),
        (
            ["groups", "reset-offsets", "g", "--topic", "t", "--to-latest", "--shift-by", "0"],
            "'--to-latest', '--shift-by'",
        ),
        (["groups", "reset-offsets", "g", "--all-topics"], "Error: Give exactly one of --to-earliest"),
        (["groups", "reset-offsets", "g", "--all-topics", "--to-earliest", "--to-offset", "0"], "Give exactly one of"),
        (["groups", "reset-offsets", "g", "--to-earliest"], "Error: Name topics with --topic"),
        (["groups", "delete-offsets", "g"], "Error: Name topics with --topic"),
        (["groups", "reset-offsets", "g", "--to-earliest", "--all-topics", "--topic", "t"], "not both"),
        (["groups", "reset-offsets", "g", "--to-earliest", "--topic", "t:x"], "'t:x' is not TOPIC or TOPIC:P"),
        (["groups", "reset-offsets", "g", "--by-duration", "1x", "--all-topics"], "'1x' is not a duration"),
        (["groups", "reset-offsets", "g", "--to-datetime", "noon", "--all-topics"], "'noon' is not a time"),
        (
            ["groups", "reset-offsets", "g", "--from-file", "/no/such"],
            "Cannot read /no/such: No such file or directory.",
        ),
        (["groups", "reset-offsets", "g", "--from-file", "-", "--all-topics"], "The file names the topics"),
        (["topics", "create", "t", "--config", "retention.ms"], "'retention.ms' is not NAME=VALUE"),
        (["topics", "create", "t", "--partitions", "0"], "0 is not in the range"),
        (["topics", "list", "--bootstrap", "host:port"], "'host:port' is not an address"),
        (["topics", "list", "--bootstrap", ","], "no address in ','"),
    ],
)
def test_a_usage_error_is_exit_code_2_and_names_the_correct_usage(
    monkeypatch: pytest.MonkeyPatch, arguments: list[str], sentence: str
) -> None:
    monkeypatch.setenv("SHELL", "/bin/dash")
    result = Kgctl()(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert sentence in " ".join(result.stderr.split())


@pytest.mark.parametrize("plan", ["t,0\n", "t,x,5\n", "t,0,-1\n", "a,b,t,0,5\n", "topic,partition,offset\n"])
def test_a_plan_that_cannot_be_read_is_exit_code_2_and_names_the_line(plan: str) -> None:
    result = Kgctl()("groups", "reset-offsets", "g", "--from-file", "-", text="\nt,1,7\n" + plan)
    assert result.exit_code == 2
    assert "line 3: not [group,]topic,partition,offset" in " ".join(result.stderr.split())


def test_a_plan_that_names_a_partition_twice_is_exit_code_2_and_names_the_line() -> None:
    result = Kgctl()("groups", "reset-offsets", "g", "--from-file", "-", text="t,0,7\nt,1,7\n\nt,0,8\n")
    assert result.exit_code == 2
    assert "line 4: t-0 has an offset already" in " ".join(result.stderr.split())


@pytest.mark.parametrize(
    "arguments",
    [
        ["topics", "create", "t", "--partitions", 1 << 31],
        ["topics", "delete", "\udcff"],
        ["groups", "describe", "\udcff"],
    ],
)
def test_a_value_that_does_not_fit_into_a_request_is_exit_code_2(our_cluster: Cluster, arguments: list[object]) -> None:
    result = Kgctl(our_cluster.bootstrap_servers)(*arguments)
    assert result.exit_code == 2, result.output
    assert "a value does not fit into the request" in result.stderr


def test_only_the_first_of_many_errors_are_printed_and_the_rest_counted(our_cluster: Cluster) -> None:
    result = Kgctl(our_cluster.bootstrap_servers)("groups", "describe", *[fresh("absent") for _ in range(25)])
    assert result.exit_code == 5
    assert len(result.stderr.splitlines()) == 21
    assert result.stderr.splitlines()[-1] == "Error: and 5 more."


def test_an_unreachable_cluster_is_exit_code_7_with_advice() -> None:
    address = closed_port()
    result = Kgctl(address)("groups", "list")
    assert (result.exit_code, result.stdout) == (7, "")
    refused = f"Error: {address}: connection refused; nothing listens there."
    assert result.stderr == f"{refused} Check the address given with --bootstrap.\n"


def test_the_advice_after_a_refused_connection_names_where_the_address_came_from(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    result = CliRunner().invoke(app, ["groups", "list"], env={"KGCTL_BOOTSTRAP": closed_port()})
    assert result.exit_code == 7
    assert result.stderr.endswith("nothing listens there. Check the address in KGCTL_BOOTSTRAP.\n")
    monkeypatch.delenv("KGCTL_BOOTSTRAP", raising=False)
    assert Settings().connection_advice() == (
        "Start a local broker with `kgctl broker start`, or name a cluster with --bootstrap HOST:PORT."
    )


def test_a_broker_that_stops_answering_is_exit_code_3_within_the_timeout() -> None:
    with listening(ApiVersionsThenSilence()) as endpoint:
        begun = time.monotonic()
        result = Kgctl(str(endpoint))("topics", "list", "--timeout", "0.6")
        assert time.monotonic() - begun < 5
    assert (result.exit_code, result.stdout) == (3, "")
    assert "no answer in time" in result.stderr


def test_a_single_address_gets_the_whole_timeout() -> None:
    with listening(wait_for_the_end) as endpoint:
        begun = time.monotonic()
        result = Kgctl(str(endpoint))("--timeout", "1.5", "groups", "list")
        assert 1.4 < time.monotonic() - begun < 5
    assert result.exit_code == 7
    assert result.stderr == (
        f"Error: {endpoint}: it accepts connections but does not answer: it hangs, needs TLS, or is not Kafka\n"
    )


def test_several_addresses_share_the_timeout(our_cluster: Cluster) -> None:
    with listening(wait_for_the_end) as first, listening(wait_for_the_end) as second:
        addresses = f"{first},{second},{our_cluster.bootstrap_servers}"
        result = Kgctl(addresses)("--timeout", "3", "topics", "list")
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (KgctlError("x"), 1),
        (Unsupported("x"), 1),
        (TimedOut("x"), 3),
        (NotFound("x"), 5),
        (Precondition("x"), 6),
        (Unreachable("x"), 7),
        (NotKafka("x"), 7),
        (BadValue("x"), 2),
        (BrokerError(-1, "x"), 1),
        (BrokerError(999, "x"), 1),
        (BrokerError(7, "x"), 3),
        (BrokerError(3, "x"), 5),
        (BrokerError(69, "x"), 5),
        (BrokerError(36, "x"), 6),
        (BrokerError(68, "x"), 6),
        (BrokerError(29, "x"), 7),
        (BrokerError(30, "x"), 7),
        (BrokerError(31, "x"), 7),
        (BrokerError(58, "x"), 7),
        (ZeroDivisionError("x"), 1),
    ],
)
def test_each_failure_is_one_line_and_its_exit_code(
    capsys: pytest.CaptureFixture[str], error: Exception, code: int
) -> None:
    assert report(error, Settings()) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("Error: ")
    assert captured.err.count("\n") == 1


@pytest.mark.parametrize(
    "error", [typer.Exit(4), typer.Abort(), typer.BadParameter("x"), BrokenPipeError(32, "Broken pipe")]
)
def test_errors_that_typer_handles_are_raised_again(error: Exception) -> None:
    with pytest.raises(type(error)):
        report(error, Settings())


def test_a_bug_is_one_line_unless_the_traceback_is_requested(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KGCTL_TRACEBACK", "1")
    with pytest.raises(ZeroDivisionError):
        report(ZeroDivisionError("x"), Settings())


@pytest.mark.parametrize(("text", "seconds"), [("2m", 120), ("1.5", 1.5), ("500ms", 0.5)])
def test_a_time_limit_is_a_number_of_seconds_or_a_duration(text: str, seconds: float) -> None:
    assert parse_seconds(text) == seconds
