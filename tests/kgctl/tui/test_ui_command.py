"""`kgctl ui` as a command: single frames, options, errors, signals, imports."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import xml.etree.ElementTree as ET
from contextlib import ExitStack
from pathlib import Path

import pytest
from typer.testing import Result

from tests.harness import ROOT
from tests.harness.clusters import Cluster, fresh
from tests.harness.commandline import Kgctl, member_of


def ui(cluster: str, *arguments: object) -> Result:
    return Kgctl(cluster)("ui", *arguments)


@pytest.fixture
def group(cluster: Cluster) -> str:
    kgctl = Kgctl(cluster.bootstrap_servers)
    topic, group = fresh("orders"), fresh("billing")
    assert kgctl("topics", "create", topic, "--partitions", 2).exit_code == 0
    kgctl.commit(group, topic, p0=0)
    return group


def test_one_frame_is_text_of_the_requested_size(cluster: Cluster, group: str) -> None:
    command = [sys.executable, "-m", "kgctl", "ui", group, "--bootstrap", cluster.bootstrap_servers, "--once"]
    known = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS")}
    done = subprocess.run(
        [*command, "--size", "100x50"], capture_output=True, text=True, timeout=60, cwd=ROOT, env=known, check=False
    )
    lines = done.stdout.splitlines()
    assert (done.returncode, done.stderr, len(lines)) == (0, "", 50)
    assert max(map(len, lines)) <= 100
    assert "\x1b" not in done.stdout
    assert group in done.stdout
    assert "Empty" in done.stdout


def test_one_frame_as_svg(cluster: Cluster, group: str, tmp_path: Path) -> None:
    done = ui(cluster.bootstrap_servers, group, "--once", "--svg", tmp_path / "frame.svg")
    assert (done.exit_code, done.stdout, done.stderr) == (0, "", "")
    root = ET.parse(tmp_path / "frame.svg").getroot()
    text = "".join(root.itertext()).replace("\xa0", " ")
    assert group in text
    assert "Rebalances" in text


def test_one_frame_of_each_panel(our_cluster: Cluster) -> None:
    kgctl, group, topic = Kgctl(our_cluster.bootstrap_servers), fresh("app"), fresh("t")
    assert kgctl("topics", "create", topic).exit_code == 0
    screens = {"overview": "State: Stable", "members": "Members 1", "partitions": "Partitions 1"}
    screens |= {"rebalances": "Rebalances 1", "assignment": "Gen 1", "lag": "Lag, 10 min"}
    with member_of(kgctl, group, {topic: [0]}):
        for screen, title in screens.items():
            result = kgctl("ui", group, "--once", "--screen", screen, "--size", "80x24")
            assert result.exit_code == 0, result.stderr
            assert title in result.stdout
            assert ("\u25cf Stable" in result.stdout) == (screen == "overview")


def test_one_frame_of_the_help(our_cluster: Cluster) -> None:
    result = Kgctl(our_cluster.bootstrap_servers)("ui", "--once", "--screen", "help", "--size", "120x60")
    assert result.exit_code == 0, result.stderr
    assert "ctrl+r" in result.stdout


def test_a_coloured_frame_does_not_move_the_cursor(our_cluster: Cluster) -> None:
    plain = ui(our_cluster.bootstrap_servers, "--once", "--screen", "help").stdout
    colored = ui(our_cluster.bootstrap_servers, "--once", "--screen", "help", "--color", "always").stdout
    escapes = re.compile(r"\x1b\[[0-9;]*([A-Za-z])")
    assert set(escapes.findall(colored)) == {"m"}
    assert [line.rstrip() for line in escapes.sub("", colored).splitlines()] == plain.splitlines()


def test_two_snapshots_within_a_moment_show_no_rates(our_cluster: Cluster, group_of_ours: str) -> None:
    frames = [
        ui(
            our_cluster.bootstrap_servers, "--once", "--interval", interval, "--snapshots", count, "--size", "160x200"
        ).stdout
        for count, interval in ((1, 600), (2, 0.1))
    ]
    rows = [next(line for line in frame.splitlines() if group_of_ours in line) for frame in frames]
    once, twice = (row.split().count("-") for row in rows)
    assert twice == once >= 2, rows


def test_a_group_is_unused_after_the_given_time(our_cluster: Cluster, group_of_ours: str) -> None:
    options = ("--once", "-o", "json", "--unused-after", "1ms")
    rows = json.loads(ui(our_cluster.bootstrap_servers, *options).stdout)["rows"]
    assert next(row["verdict"] for row in rows if row["group"] == group_of_ours) == "UNUSED"


@pytest.fixture
def group_of_ours(our_cluster: Cluster) -> str:
    kgctl = Kgctl(our_cluster.bootstrap_servers)
    topic, group = fresh("orders"), fresh("billing")
    assert kgctl("topics", "create", topic).exit_code == 0
    kgctl.commit(group, topic, p0=0)
    return group


def test_a_missing_group_exits_with_not_found(cluster: Cluster) -> None:
    done = ui(cluster.bootstrap_servers, "nobody", "--once")
    assert (done.exit_code, done.stderr) == (5, "Error: Consumer group 'nobody' does not exist.\n")
    assert "does not exist" in done.stdout


def test_an_unreachable_cluster_is_one_line_and_its_exit_code() -> None:
    done = ui("127.0.0.1:1", "--once")
    assert (done.exit_code, done.stdout) == (7, "")
    assert done.stderr.startswith("Error: 127.0.0.1:1: connection refused")
    assert done.stderr.count("\n") == 1


def test_a_signal_ends_it_while_a_broker_hangs() -> None:
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    with ExitStack() as stack:
        hung = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        address = "{}:{}".format(*hung.getsockname())
        command = [sys.executable, "-m", "kgctl", "ui", "--once", "--bootstrap", address]
        children = [
            stack.enter_context(
                subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT)
            )
            for _ in numbers
        ]
        for child in children:
            stack.callback(child.kill)
        for _ in numbers:
            asked = stack.enter_context(hung.accept()[0])
            # The process waits for an answer, so it has installed its signal handlers.
            assert asked.recv(1)
        for child, number in zip(children, numbers, strict=True):
            child.send_signal(number)
            assert (*child.communicate(timeout=20), child.returncode) == ("", "", 128 + number)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ([], "Error: The dashboard needs a terminal"),
        (["--svg", "x.svg"], "needs --once."),
        (["--screen", "help"], "needs --once."),
        (["--once", "--screen", "nothing"], "'nothing' is not one of groups, topics, events"),
        (["--once", "--screen", "members"], "'members' needs a GROUP."),
        (["g", "--once", "--screen", "groups"], "'groups' shows all groups"),
        (["", "--once"], "an empty name."),
        (["--once", "--size", "80"], "'80' is not a size such as 120x40"),
        (["--once", "--size", "39x24"], "'39x24' is not a size"),
        (["--once", "--size", "501x24"], "'501x24' is not a size"),
        (["--once", "--theme", "pink"], "'pink' is not one of dark, light, contrast."),
        (["--once", "--interval", "0"], "0 is not in the range"),
        (["--once", "--snapshots", "0"], "0 is not in the range"),
        (["--once", "--bell"], "'--bell': needs the live dashboard"),
        (["--replay", "x", "--once", "--alert-command", "true"], "'--alert-command': needs the live dashboard"),
        (["--once", "--alert-command", "no-such-program"], "'no-such-program' is not a program that can be run"),
    ],
)
def test_wrong_usage_is_reported_before_connecting(arguments: list[str], text: str) -> None:
    result = Kgctl("127.0.0.1:1")("ui", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert text in " ".join(result.stderr.split())


def test_an_svg_file_that_cannot_be_written_is_an_error(our_cluster: Cluster, tmp_path: Path) -> None:
    result = Kgctl(our_cluster.bootstrap_servers)("ui", "--once", "--svg", tmp_path / "none" / "frame.svg")
    assert result.exit_code == 2
    assert "No such file or directory" in result.stderr


def test_no_other_command_loads_textual(our_cluster: Cluster) -> None:
    code = "import sys; from kgctl.__main__ import main\ntry: main()\nexcept SystemExit: pass\nprint('textual' in sys.modules)"
    for arguments, loaded in ((["groups", "list"], "False"), (["ui", "--once"], "True")):
        command = [sys.executable, "-c", code, *arguments, "--bootstrap", our_cluster.bootstrap_servers]
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=60, check=False)
        assert done.stdout.splitlines()[-1] == loaded, done.stderr


def test_a_frame_is_recorded_and_replayed_without_a_cluster(cluster: Cluster, group: str, tmp_path: Path) -> None:
    path = tmp_path / "incident"
    options = (group, "--once", "--size", "100x50")
    done = ui(cluster.bootstrap_servers, *options, "--snapshots", 2, "--interval", 0.2, "--record", path)
    assert (done.exit_code, done.stderr) == (0, "")
    again = ui("127.0.0.1:1", *options, "--replay", path, "--at", "+1h")
    assert again.exit_code == 2
    assert "is not in the recording" in again.stderr
    again = ui("127.0.0.1:1", *options, "--replay", path)
    assert (again.exit_code, again.stderr) == (0, "")
    assert "REPLAY" in again.stdout.splitlines()[0]
    assert group in again.stdout
    assert "Empty" in again.stdout
    refused = ui(cluster.bootstrap_servers, *options, "--record", path)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "it exists; choose another name or pass --force" in refused.stderr


def test_the_data_of_a_frame_are_an_answer_like_others(cluster: Cluster, group: str) -> None:
    done = ui(cluster.bootstrap_servers, "--once", "-o", "json")
    assert (done.exit_code, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert (found["kind"], found["errors"]) == ("ui-groups", [])
    row = next(row for row in found["rows"] if row["group"] == group)
    assert (row["state"], row["lag"], len(row["lags"])) == ("Empty", 0, 60)
    done = ui(cluster.bootstrap_servers, group, "--once", "-o", "jsonl")
    assert [json.loads(line)["partition"] for line in done.stdout.splitlines()] == [0]
    done = ui(cluster.bootstrap_servers, "-o", "json")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "--once has its data" in done.stderr
