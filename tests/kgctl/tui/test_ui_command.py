"""`kgctl ui` as a command: one frame without a terminal, its options, what goes wrong, and what is not loaded without it."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tests.harness import ROOT
from tests.harness.clusters import Cluster, fresh
from tests.harness.commandline import Kgctl, member_of


def ui(cluster: str, *words: object, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "kgctl", "ui", "--bootstrap", cluster, *map(str, words)]
    known = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS")}
    return subprocess.run(
        command, capture_output=True, text=True, timeout=60, cwd=ROOT, env=known | environment, check=False
    )


@pytest.fixture
def group(cluster: Cluster) -> str:
    kgctl = Kgctl(cluster.bootstrap_servers)
    topic, group = fresh("orders"), fresh("billing")
    assert kgctl("topics", "create", topic, "--partitions", 2).exit_code == 0
    kgctl.commit(group, topic, p0=0)
    return group


def test_one_frame_is_text_of_the_size_that_was_asked_for(cluster: Cluster, group: str) -> None:
    done = ui(cluster.bootstrap_servers, "--once", "--size", "100x200")
    lines = done.stdout.splitlines()
    assert (done.returncode, done.stderr, len(lines)) == (0, "", 200)
    assert max(map(len, lines)) <= 100
    assert "\x1b" not in done.stdout
    row = next(line for line in lines if f" {group} " in line)
    assert "Empty" in row


def test_one_frame_as_a_picture(cluster: Cluster, group: str, tmp_path: Path) -> None:
    done = ui(cluster.bootstrap_servers, group, "--once", "--svg", tmp_path / "frame.svg")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    root = ET.parse(tmp_path / "frame.svg").getroot()
    text = "".join(root.itertext()).replace("\xa0", " ")
    assert group in text
    assert "Overview" in text


@pytest.mark.parametrize(
    ("screen", "shown"),
    [
        ("overview", "[1 Overview]"),
        ("members", "[2 Members]"),
        ("assignment", "[3 Assignment]"),
        ("offsets", "[4 Offs"),
    ],
)
def test_one_frame_of_each_pane(our_cluster: Cluster, screen: str, shown: str) -> None:
    kgctl, group, topic = Kgctl(our_cluster.bootstrap_servers), fresh("app"), fresh("t")
    assert kgctl("topics", "create", topic).exit_code == 0
    with member_of(kgctl, group, {topic: [0]}):
        done = ui(our_cluster.bootstrap_servers, group, "--once", "--screen", screen, "--size", "80x24")
    assert done.returncode == 0, done.stderr
    assert shown in done.stdout
    assert "● Stable" in done.stdout


def test_the_help_lists_keys(our_cluster: Cluster) -> None:
    done = ui(our_cluster.bootstrap_servers, "--once", "--screen", "help")
    assert done.returncode == 0, done.stderr
    assert "ctrl+r" in done.stdout


def test_a_coloured_frame_does_not_move_the_cursor(our_cluster: Cluster) -> None:
    plain = ui(our_cluster.bootstrap_servers, "--once", "--screen", "help").stdout
    colored = ui(our_cluster.bootstrap_servers, "--once", "--screen", "help", "--color", "always").stdout
    escapes = re.compile(r"\x1b\[[0-9;]*([A-Za-z])")
    assert set(escapes.findall(colored)) == {"m"}
    assert [line.rstrip() for line in escapes.sub("", colored).splitlines()] == plain.splitlines()


def test_rates_need_two_looks(our_cluster: Cluster, group_of_ours: str) -> None:
    frames = [
        ui(
            our_cluster.bootstrap_servers, "--once", "--interval", interval, "--snapshots", looks, "--size", "160x200"
        ).stdout
        for looks, interval in ((1, 600), (2, 0.1))
    ]
    rows = [next(line for line in frame.splitlines() if group_of_ours in line) for frame in frames]
    once, twice = (row.split().count("0") for row in rows)
    assert twice == once + 2, rows


@pytest.fixture
def group_of_ours(our_cluster: Cluster) -> str:
    kgctl = Kgctl(our_cluster.bootstrap_servers)
    topic, group = fresh("orders"), fresh("billing")
    assert kgctl("topics", "create", topic).exit_code == 0
    kgctl.commit(group, topic, p0=0)
    return group


def test_a_group_that_is_not_there_is_said_and_counts_as_not_found(cluster: Cluster) -> None:
    done = ui(cluster.bootstrap_servers, "nobody", "--once")
    assert (done.returncode, done.stderr) == (5, "Error: Consumer group 'nobody' does not exist.\n")
    assert "does not exist" in done.stdout


def test_nobody_there_is_one_line_and_its_exit_code() -> None:
    done = ui("127.0.0.1:1", "--once")
    assert (done.returncode, done.stdout) == (7, "")
    assert done.stderr.startswith("Error: 127.0.0.1:1: connection refused")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_while_a_broker_hangs(number: signal.Signals) -> None:
    with socket.create_server(("127.0.0.1", 0)) as hung:
        address = "{}:{}".format(*hung.getsockname())
        command = [sys.executable, "-m", "kgctl", "ui", "--once", "--bootstrap", address]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT)
        try:
            asked, _ = hung.accept()
            # It waits for an answer, and so it is past its beginning.
            with asked:
                assert asked.recv(1)
                child.send_signal(number)
                out, err = child.communicate(timeout=20)
        finally:
            child.kill()
            child.wait()
    assert (child.returncode, out, err) == (128 + number, "", "")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "The dashboard needs a terminal"),
        (["--svg", "x.svg"], "needs --once."),
        (["--screen", "help"], "needs --once."),
        (["--once", "--screen", "nothing"], "'nothing' is not one of groups, help, overview"),
        (["--once", "--screen", "offsets"], "'offsets' needs a GROUP."),
        (["g", "--once", "--screen", "groups"], "'groups' shows all groups"),
        (["", "--once"], "an empty name."),
        (["--once", "--size", "80"], "'80' is not a size such as 120x40"),
        (["--once", "--size", "39x24"], "'39x24' is not a size"),
        (["--once", "--size", "501x24"], "'501x24' is not a size"),
        (["--once", "--theme", "pink"], "'pink' is not one of dark, light, contrast."),
        (["--once", "--interval", "0"], "0 is not in the range"),
        (["--once", "--snapshots", "0"], "0 is not in the range"),
    ],
)
def test_wrong_usage_is_said_before_anything_is_asked(words: list[str], said: str) -> None:
    done = ui("127.0.0.1:1", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in " ".join(done.stderr.split())


def test_a_picture_that_cannot_be_written_is_said(our_cluster: Cluster, tmp_path: Path) -> None:
    done = ui(our_cluster.bootstrap_servers, "--once", "--svg", tmp_path / "none" / "frame.svg")
    assert done.returncode == 2
    assert "No such file or directory" in done.stderr


def test_no_other_command_loads_textual(our_cluster: Cluster) -> None:
    code = "import sys; from kgctl.__main__ import main\ntry: main()\nexcept SystemExit: pass\nprint('textual' in sys.modules)"
    for words, loaded in ((["groups", "list"], "False"), (["ui", "--once"], "True")):
        command = [sys.executable, "-c", code, *words, "--bootstrap", our_cluster.bootstrap_servers]
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=60, check=False)
        assert done.stdout.splitlines()[-1] == loaded, done.stderr
