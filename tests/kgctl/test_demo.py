"""`kgctl demo`: the guided tour runs to its end, and leaves no process or file behind."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from broker.local import broker_environment
from kgctl.demo.records import COUNTS, HOUR_MS, PARTITIONS, hour_of_records
from kgctl.demo.scenario import NEXT
from tests.harness.broker_program import eventually, is_alive
from tests.harness.terminal import terminal

KGCTL = [sys.executable, "-P", "-m", "kgctl"]
ESCAPES = re.compile(r"\x1b\[[0-9;]*m")
END_MS = 1_700_000_000_000


def start_demo(tmp_path: Path, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*KGCTL, "demo", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=broker_environment() | {"TMPDIR": str(tmp_path)},
        start_new_session=True,
    )


def pids_in(text: str) -> list[int]:
    return [int(pid) for pid in re.findall(r"\bpid (\d+)", text)]


def assert_nothing_is_left(pids: list[int], tmp_path: Path) -> None:
    assert pids
    eventually(lambda: not any(map(is_alive, pids)), "every child to end")
    eventually(lambda: not list(tmp_path.iterdir()), "the temporary directory to be removed")


def test_the_records_are_one_hour_of_keyed_json_and_the_same_in_every_run():
    records = list(hour_of_records(END_MS))
    assert records == list(hour_of_records(END_MS))
    assert Counter(record.topic for record in records) == COUNTS
    assert PARTITIONS.keys() == COUNTS.keys()
    times = [record.timestamp_ms for record in records]
    assert times == sorted(times)
    assert END_MS - HOUR_MS <= times[0] < END_MS - HOUR_MS + 1000
    assert END_MS - 1000 < times[-1] < END_MS
    assert all(json.loads(record.value)["customer"].encode() == record.key for record in records)
    assert 2e6 < sum(len(record.value) for record in records) < 10e6


def test_the_demo_runs_to_its_end_in_under_a_minute_and_leaves_nothing_behind(tmp_path: Path):
    began = time.monotonic()
    program = start_demo(tmp_path)
    out, err = program.communicate(timeout=90)
    assert program.returncode == 0, err + out
    assert time.monotonic() - began < 60
    assert err == ""
    for command in (
        "topics create orders",
        "groups describe shop",
        "groups describe shop --members",
        "groups describe shop --state",
        "groups history shop",
        "ui shop --once",
        "groups reset-offsets reports",
    ):
        assert f"$ kgctl {command}" in out
    generations = [tuple(map(int, pair)) for pair in re.findall(r"generation (\d+) with .* -> generation (\d+)", out)]
    assert len(generations) == 2
    assert all(before < after for before, after in generations)
    lag_before, lag_after = map(int, re.findall(r"lag of reports was (\d+) and is now (\d+)", out)[0])
    assert lag_before == 0
    assert COUNTS["orders"] * 0.9 < lag_after <= COUNTS["orders"]
    assert "--execute" in out
    causes = re.findall(r"(?m)^  \S+Z \d+ +stable +([a-z ]+?) +\d", out)
    assert causes[-2:] == ["session timed out", "member joined"]
    assert "● Stable" in out  # the dashboard's state machine
    assert "What to try next" in out
    assert not [line for line in [*re.findall(r"(?m)^\[\d.*", out), *NEXT.splitlines()] if len(line) > 80]
    assert_nothing_is_left(pids_in(out), tmp_path)


def read_until(program: subprocess.Popen[str], text: str) -> str:
    assert program.stdout is not None
    out = ""
    for line in program.stdout:
        out += line
        if text in line:
            return out
    raise AssertionError(f"ended with {program.wait()} before {text!r}: {out}")


@pytest.mark.parametrize(
    ("number", "moment"),
    [
        (signal.SIGINT, "$ kgctl topics create orders"),
        (signal.SIGINT, "consumer-3 is pid"),
        (signal.SIGTERM, "consumer-1 is pid"),
        (signal.SIGHUP, "$ kgctl groups describe shop"),
    ],
)
def test_an_interrupted_demo_leaves_no_process(tmp_path: Path, number: signal.Signals, moment: str):
    program = start_demo(tmp_path)
    out = read_until(program, moment)
    # To the whole process group, as a terminal does, and twice, as people do.
    os.killpg(program.pid, number)
    os.killpg(program.pid, number)
    rest, err = program.communicate(timeout=60)
    assert program.returncode == 130
    assert "Interrupted" in rest
    assert err == ""
    assert not any(map(is_alive, pids_in(out)))
    assert_nothing_is_left(pids_in(out), tmp_path)


@pytest.mark.parametrize("moment", ["[1/10]", "$ kgctl groups describe shop"])
def test_a_demo_whose_output_is_closed_ends_quietly(tmp_path: Path, moment: str):
    program = start_demo(tmp_path)
    out = read_until(program, moment)
    assert program.stdout is not None
    assert program.stderr is not None
    program.stdout.close()
    with program.stderr:
        assert program.stderr.read() == ""
    assert program.wait(60) == 141
    assert not any(map(is_alive, pids_in(out)))
    eventually(lambda: not list(tmp_path.iterdir()), "the temporary directory to be removed")


def test_a_killed_demo_leaves_no_process(tmp_path: Path):
    program = start_demo(tmp_path)
    out = read_until(program, "consumer-3 is pid")
    program.kill()
    program.communicate(timeout=60)
    assert_nothing_is_left(pids_in(out), tmp_path)


def test_a_demo_that_fails_ends_with_one_line_and_leaves_no_process(tmp_path: Path):
    program = start_demo(tmp_path)
    out = read_until(program, "consumer-3 is pid")
    os.kill(pids_in(out)[0], signal.SIGKILL)
    rest, err = program.communicate(timeout=90)
    assert program.returncode not in (0, None), rest
    assert err.startswith("Error: ")
    assert err.count("\n") == 1
    assert_nothing_is_left(pids_in(out), tmp_path)


def test_the_commands_to_try_next_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.delenv("KGCTL_BOOTSTRAP", raising=False)
    monkeypatch.setenv("PYTHONPATH", broker_environment().get("PYTHONPATH", ""))
    lines = [
        line.split("   ")[0].strip()
        for line in NEXT.splitlines()
        if "kgctl " in line and "HOST:PORT" not in line and "kgctl ui" not in line
    ]
    assert len(lines) > 5
    try:
        for line in lines:
            free_port = line.replace("broker start", "broker start --listen 127.0.0.1:0")
            command = f'kgctl() {{ {shlex.join(KGCTL)} "$@"; }}; {free_port}'
            ended = subprocess.run(["sh", "-c", command], capture_output=True, text=True)
            assert ended.returncode == 0, (line, ended)
            if "consume" in line:
                assert ended.stdout == '{"total": 12}\n'
    finally:
        subprocess.run([*KGCTL, "broker", "stop"], capture_output=True)


def test_on_a_terminal_tables_fit_and_have_colours(tmp_path: Path):
    with terminal([*KGCTL, "demo"], 100, 200, broker_environment() | {"TMPDIR": str(tmp_path)}) as shown:
        shown.wait_for(lambda screen: "$ kgctl groups describe shop --state" in screen, "the state of the group", 60)
        shown.wait_for(lambda screen: "Killing consumer-2" in screen, "the next step", 60)
        screen = shown.screen_with_colours()
        shown.press("C-c")
        shown.wait_for(lambda screen: "exit=130" in screen, "the end", 60)
    assert "\x1b[32mStable" in screen
    assert "CONSUMER-ID" in screen
    assert max(map(len, ESCAPES.sub("", screen).splitlines())) <= 100


def test_without_the_client_the_demo_says_how_to_install_it(tmp_path: Path):
    (tmp_path / "sitecustomize.py").write_text(
        "import importlib.util as u\nfind = u.find_spec\n"
        "u.find_spec = lambda name, *rest: None if name == 'confluent_kafka' else find(name, *rest)\n"
    )
    environment = broker_environment()
    environment["PYTHONPATH"] = f"{tmp_path}{os.pathsep}{environment.get('PYTHONPATH', '')}"
    ended = subprocess.run([*KGCTL, "demo"], capture_output=True, text=True, env=environment)
    assert ended.returncode == 1
    assert ended.stderr.count("\n") == 1
    assert "pip install 'kgctl[demo]'" in ended.stderr
    assert ended.stdout == ""


def test_the_tour_of_transactions_counts_each_order_once_and_leaves_nothing_behind(tmp_path: Path):
    program = start_demo(tmp_path, "transactions")
    out, err = program.communicate(timeout=90)
    assert (program.returncode, err) == (0, ""), err + out
    inside, _, afterwards = out.partition("Killing billing-1")
    assert re.search(r"billing-1 +\d+ +\d+ +Ongoing", inside)
    assert "read_committed readers of totals-0 wait at offset 102: 50 records" in inside
    counts = re.findall(r"--isolation (\w+)\n((?:    .*\n)+)", inside + afterwards)
    assert [(isolation, re.findall(r"(\d+) orders (.+)", lines)) for isolation, lines in counts] == [
        ("read_committed", [("100", "once")]),
        ("read_uncommitted", [("150", "once")]),
        ("read_committed", [("300", "once")]),
        ("read_uncommitted", [("250", "once"), ("50", "2 times")]),
    ]
    assert_nothing_is_left(pids_in(out), tmp_path)
