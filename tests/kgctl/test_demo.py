"""`kgctl demo`: the whole main job in front of a user, and nothing left of it afterwards."""

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

KGCTL = [sys.executable, "-P", "-m", "kgctl"]
END_MS = 1_700_000_000_000


def start_demo(tmp_path: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*KGCTL, "demo"],
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


def test_the_records_are_an_hour_of_keyed_json_the_same_at_every_run():
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


def test_the_demo_runs_to_its_end_in_under_a_minute_and_leaves_nothing(tmp_path: Path):
    began = time.monotonic()
    program = start_demo(tmp_path)
    told, complained = program.communicate(timeout=90)
    assert program.returncode == 0, complained + told
    assert time.monotonic() - began < 60
    assert complained == ""
    for command in (
        "topics create orders",
        "groups describe shop",
        "groups describe shop --members",
        "groups describe shop --state",
        "groups reset-offsets reports",
    ):
        assert f"$ kgctl {command}" in told
    generations = [tuple(map(int, pair)) for pair in re.findall(r"generation (\d+) with .* -> generation (\d+)", told)]
    assert len(generations) == 2
    assert all(before < after for before, after in generations)
    lag_before, lag_after = map(int, re.findall(r"lag of reports was (\d+) and is (\d+)", told)[0])
    assert lag_before == 0
    assert COUNTS["orders"] * 0.9 < lag_after <= COUNTS["orders"]
    assert "--execute" in told
    assert "What to try next" in told
    assert_nothing_is_left(pids_in(told), tmp_path)


def read_until(program: subprocess.Popen[str], words: str) -> str:
    assert program.stdout is not None
    told = ""
    for line in program.stdout:
        told += line
        if words in line:
            return told
    raise AssertionError(f"ended with {program.wait()} before {words!r}: {told}")


@pytest.mark.parametrize(
    ("number", "moment"),
    [
        (signal.SIGINT, "$ kgctl topics create orders"),
        (signal.SIGINT, "consumer-3 is pid"),
        (signal.SIGINT, "SIGKILL for"),
        (signal.SIGTERM, "consumer-1 is pid"),
        (signal.SIGHUP, "$ kgctl groups describe shop"),
    ],
)
def test_an_interrupted_demo_leaves_no_child(tmp_path: Path, number: signal.Signals, moment: str):
    program = start_demo(tmp_path)
    told = read_until(program, moment)
    # As a terminal does it: to the whole group of processes. Twice, as people do.
    os.killpg(program.pid, number)
    os.killpg(program.pid, number)
    rest, complained = program.communicate(timeout=60)
    assert program.returncode == 130
    assert "Interrupted" in rest
    assert complained == ""
    assert not any(map(is_alive, pids_in(told)))
    assert_nothing_is_left(pids_in(told), tmp_path)


@pytest.mark.parametrize("moment", ["[1/9]", "$ kgctl groups describe shop"])
def test_a_demo_that_nobody_reads_any_more_ends_quietly(tmp_path: Path, moment: str):
    program = start_demo(tmp_path)
    told = read_until(program, moment)
    assert program.stdout is not None
    assert program.stderr is not None
    program.stdout.close()
    with program.stderr:
        assert program.stderr.read() == ""
    assert program.wait(60) == 141
    assert not any(map(is_alive, pids_in(told)))
    eventually(lambda: not list(tmp_path.iterdir()), "the temporary directory to be removed")


def test_a_killed_demo_leaves_no_child(tmp_path: Path):
    program = start_demo(tmp_path)
    told = read_until(program, "consumer-3 is pid")
    program.kill()
    program.communicate(timeout=60)
    assert_nothing_is_left(pids_in(told), tmp_path)


def test_a_broken_show_ends_with_one_line_and_leaves_no_child(tmp_path: Path):
    program = start_demo(tmp_path)
    told = read_until(program, "consumer-3 is pid")
    os.kill(pids_in(told)[0], signal.SIGKILL)
    rest, complained = program.communicate(timeout=90)
    assert program.returncode not in (0, None), rest
    assert complained.startswith("Error: ")
    assert complained.count("\n") == 1
    assert_nothing_is_left(pids_in(told), tmp_path)


def test_what_to_try_next_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.delenv("KGCTL_BOOTSTRAP", raising=False)
    monkeypatch.setenv("PYTHONPATH", broker_environment().get("PYTHONPATH", ""))
    lines = [line.split("   ")[0].strip() for line in NEXT.splitlines() if "kgctl " in line and "HOST:PORT" not in line]
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


def test_without_the_client_the_demo_says_how_to_get_it(tmp_path: Path):
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
