"""`kgctl broker`: what users and scripts see of the local broker."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from broker.local import broker_command, broker_environment, holder_pid
from broker.process_identity import ProcessIdentity
from broker.ready_file import Ready
from kgctl.commands.broker.security import keep_context
from tests.harness.broker_program import PATIENCE_S, accepts, eventually, is_alive

KGCTL = [sys.executable, "-P", "-m", "kgctl"]


def kgctl(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*KGCTL, *map(str, arguments)], capture_output=True, text=True, env=broker_environment(), timeout=PATIENCE_S * 2
    )


def row_of(*arguments: object) -> dict[str, object]:
    answer = json.loads(kgctl(*arguments, "-o", "json").stdout)
    assert (answer["version"], answer["kind"]) == (2, "local-broker")
    (row,) = answer["rows"]
    return row


@contextlib.contextmanager
def running(data_dir: Path, *arguments: object) -> Iterator[dict[str, object]]:
    """The row that `start` prints. The broker is killed at the end if the test left it running."""
    try:
        yield row_of("broker", "start", "--data-dir", data_dir, "--listen", "127.0.0.1:0", *arguments)
    finally:
        pid = holder_pid(data_dir)
        if pid is not None:
            os.kill(pid, signal.SIGKILL)
            eventually(lambda: holder_pid(data_dir) is None, "the broker to end")


def test_a_secured_broker_is_started_found_used_and_stopped_with_one_command_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    directory = tmp_path / "data" / "kgctl" / "broker"
    try:
        started = kgctl("broker", "start", "--secure", "--listen", "127.0.0.1:0", "-o", "json")
        (row,) = json.loads(started.stdout)["rows"]
        assert row["security_protocol"] == "SASL_SSL"
        assert "kgctl --context local-secure" in started.stderr
        assert row_of("broker", "status") == row
        for way in (["--context", "local-secure"], ["--command-config", row["client_properties"]], []):
            listed = kgctl(*way, "topics", "list")
            assert listed.returncode == 0, listed.stderr
            assert "__consumer_offsets" in listed.stdout
        assert row_of("broker", "stop")["state"] == "stopped"
        # With several listeners, that of the client.properties is used.
        two = "listeners=PLAINTEXT://127.0.0.1:0,SASL_SSL://127.0.0.1:0"
        (row,) = json.loads(kgctl("broker", "start", "--secure", "--override", two, "-o", "json").stdout)["rows"]
        assert (row["security_protocol"], len(row["other_listeners"])) == ("PLAINTEXT", 1)
        assert row["other_listeners"][0].endswith(" (SASL_SSL)")
        for way in (["--context", "local-secure"], []):
            listed = kgctl(*way, "topics", "list")
            assert listed.returncode == 0, listed.stderr
        assert row_of("broker", "stop")["state"] == "stopped"
    finally:
        pid = holder_pid(directory)
        if pid is not None:
            os.kill(pid, signal.SIGKILL)


def test_a_file_of_contexts_that_is_not_valid_does_not_fail_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    contexts, properties = tmp_path / "kgctl" / "config.toml", tmp_path / "client.properties"
    contexts.parent.mkdir()
    contexts.write_text("[wrong]\n")
    properties.write_text("bootstrap.servers=127.0.0.1:9093\nsecurity.protocol=SASL_SSL\n")
    ready = Ready(
        address="127.0.0.1:9093",
        pid=1,
        data_dir=str(tmp_path),
        log_file="",
        durability="power",
        started_ms=0,
        unimplemented_options=[],
        client_properties=str(properties),
    )
    keep_context(ready, is_default=True)
    said = capsys.readouterr().err
    assert "config.toml, line 1: unknown setting 'wrong'" in said
    assert f"kgctl --command-config {properties}" in said
    assert contexts.read_text() == "[wrong]\n"


def test_start_prints_the_address_and_status_and_stop_find_the_broker(tmp_path: Path):
    with running(tmp_path) as row:
        assert row["state"] == "running"
        assert accepts(str(row["address"]))
        assert row["data_dir"] == str(tmp_path)
        assert row["durability"] == "power"
        assert row_of("broker", "status", "--data-dir", tmp_path) == row
        stopped = row_of("broker", "stop", "--data-dir", tmp_path)
        assert stopped["state"] == "stopped"
        assert stopped["address"] is None
        assert not is_alive(int(str(row["pid"])))


def test_status_without_a_broker_exits_with_3_and_prints_a_row(tmp_path: Path):
    ended = kgctl("broker", "status", "--data-dir", tmp_path / "none", "-o", "json")
    assert ended.returncode == 3
    assert json.loads(ended.stdout)["rows"][0]["state"] == "stopped"
    assert not (tmp_path / "none").exists()


def test_status_of_a_killed_broker_exits_with_3(tmp_path: Path):
    with running(tmp_path) as row:
        os.kill(int(str(row["pid"])), signal.SIGKILL)
        eventually(lambda: holder_pid(tmp_path) is None, "the broker to end")
        assert kgctl("broker", "status", "--data-dir", tmp_path).returncode == 3


def test_a_suspended_broker_is_not_running_and_force_ends_it(tmp_path: Path):
    with running(tmp_path) as row:
        pid = int(str(row["pid"]))
        assert kgctl("broker", "status", "--check", "--data-dir", tmp_path).returncode == 0
        os.kill(pid, signal.SIGSTOP)
        done = kgctl("broker", "status", "--timeout", "0.5", "--data-dir", tmp_path, "-o", "json")
        assert done.returncode == 3
        (found,) = json.loads(done.stdout)["rows"]
        reason = f"its process is suspended; resume it with `kill -CONT {pid}`"
        assert found == row | {"state": "unresponsive", "reason": reason}
        check = kgctl("broker", "status", "--check", "--timeout", "0.5", "--data-dir", tmp_path)
        assert (check.returncode, check.stdout) == (3, "")
        assert check.stderr == f"Error: the broker of {tmp_path} is unresponsive: {reason}\n"
        again = kgctl("broker", "start", "--if-not-running", "--timeout", "0.5", "--data-dir", tmp_path)
        assert (again.returncode, "see `kgctl broker stop --force`" in again.stderr) == (6, True)
        late = kgctl("broker", "stop", "--timeout", "0.3", "--data-dir", tmp_path)
        assert (late.returncode, "add --force to kill it" in late.stderr) == (3, True)
        assert is_alive(pid)
        ended = kgctl("broker", "stop", "--force", "--data-dir", tmp_path)
        assert (ended.returncode, f"Killed the broker (pid {pid})" in ended.stderr) == (0, True), ended.stderr
        assert kgctl("broker", "status", "--check", "--data-dir", tmp_path).returncode == 3


def test_force_stops_a_broker_that_answers_without_killing_it(tmp_path: Path):
    with running(tmp_path):
        done = kgctl("broker", "stop", "--force", "--data-dir", tmp_path, "-o", "json")
        assert (done.returncode, done.stderr) == (0, "")
        assert row_of("broker", "status", "--data-dir", tmp_path)["ended"] is not None


def test_start_if_not_running_starts_a_broker_once(tmp_path: Path):
    start = ["broker", "start", "--if-not-running", "--listen", "127.0.0.1:0", "--data-dir", tmp_path]
    with running(tmp_path, "--if-not-running") as row:
        done = kgctl(*start, "-o", "json")
        assert (done.returncode, json.loads(done.stdout)["rows"], done.stderr) == (0, [row], "")
        other = kgctl(*start, "--listen", "127.0.0.1:1")
        assert (other.returncode, f"already listens on {row['address']}, not on 127.0.0.1:1" in other.stderr) == (
            0,
            True,
        )


def test_starts_at_the_same_time_all_find_one_broker(tmp_path: Path):
    arguments = ["broker", "start", "--if-not-running", "--listen", "127.0.0.1:0", "--data-dir", str(tmp_path)]
    with contextlib.ExitStack() as ending:
        ending.callback(kgctl, "broker", "stop", "--data-dir", tmp_path)
        starts = [
            subprocess.Popen([*KGCTL, *arguments, "-o", "json"], stdout=subprocess.PIPE, env=broker_environment())
            for _ in range(3)
        ]
        answers = [start.communicate(timeout=PATIENCE_S * 2)[0] for start in starts]
        assert [start.returncode for start in starts] == [0, 0, 0]
        assert len({json.loads(answer)["rows"][0]["pid"] for answer in answers}) == 1


def test_stopping_without_a_broker_succeeds_and_says_so(tmp_path: Path):
    ended = kgctl("broker", "stop", "--data-dir", tmp_path)
    assert ended.returncode == 0
    assert "No broker runs" in ended.stderr


HOLD = """
import fcntl, sys
lock = open(sys.argv[1] + "/lock", "w")
fcntl.flock(lock, fcntl.LOCK_EX)
lock.write(sys.argv[2])
lock.flush()
print(flush=True)
sys.stdin.read()
"""


@contextlib.contextmanager
def held(data_dir: Path, content: str) -> Iterator[subprocess.Popen[str]]:
    """A process that holds the lock of a directory, which contains this text."""
    command = [sys.executable, "-c", HOLD, str(data_dir), content]
    program = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert program.stdout is not None
    program.stdout.readline()
    try:
        yield program
    finally:
        program.kill()
        program.communicate()


def a_lock(**fields: object) -> str:
    """The lock of a broker with the pid of this process, except for these fields."""
    return json.dumps({**ProcessIdentity.own()._asdict(), **fields})


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (f"{os.getpid()}\n", "cannot be verified"),
        (a_lock(start_time=1), "started at another time"),
        (a_lock(pid_namespace=1), "runs in another PID namespace"),
        (a_lock(pid=2**22 + 1), "there is no process with this pid"),
        ("", "does not name the process"),
    ],
    ids=["older version", "other start", "other namespace", "no process", "empty"],
)
def test_stop_signals_no_process_that_did_not_write_the_lock(tmp_path: Path, content: str, reason: str):
    signals: list[int] = []
    previous = signal.signal(signal.SIGTERM, lambda number, _: signals.append(number))
    try:
        with held(tmp_path, content):
            ended = kgctl("broker", "stop", "--data-dir", tmp_path)
    finally:
        signal.signal(signal.SIGTERM, previous)
    assert ended.returncode == 6
    assert f"cannot stop the broker of {tmp_path}" in ended.stderr
    assert reason in ended.stderr
    assert ended.stderr.count("\n") == 1
    assert signals == []


@pytest.mark.skipif(sys.platform != "linux", reason="needs PID namespaces")
def test_stop_refuses_a_broker_in_another_pid_namespace(tmp_path: Path):
    contain = ["unshare", "-Urpf", "--kill-child", "--mount-proc"]
    if (
        shutil.which("unshare") is None
        or subprocess.run([*contain, "true"], capture_output=True, check=False).returncode
    ):
        pytest.skip("this user may not make a PID namespace")
    command = [*contain, *broker_command(), "--data-dir", str(tmp_path), "--listen", "127.0.0.1:0"]
    program = subprocess.Popen(command, stderr=subprocess.DEVNULL, env=broker_environment())
    try:
        eventually((tmp_path / "ready.json").exists, "the ready file")
        ended = kgctl("broker", "stop", "--data-dir", tmp_path)
        assert ended.returncode == 6
        assert "it runs in another PID namespace, such as a container; stop it where it was started" in ended.stderr
        row = row_of("broker", "status", "--data-dir", tmp_path)
        assert (row["state"], row["pid"]) == ("running", 1)
    finally:
        program.kill()
        program.wait()


def test_a_broker_without_its_lock_file_is_not_reported_as_stopped(tmp_path: Path):
    with running(tmp_path) as row:
        pid = int(str(row["pid"]))
        # Stopped, it cannot notice yet that the file is gone.
        os.kill(pid, signal.SIGSTOP)
        (tmp_path / "lock").unlink()
        assert row_of("broker", "status", "--data-dir", tmp_path)["state"] == "starting"
        ended = kgctl("broker", "stop", "--data-dir", tmp_path)
        assert ended.returncode == 6
        assert f"{tmp_path}/lock does not name the process" in ended.stderr
        os.kill(pid, signal.SIGCONT)
        eventually(lambda: not is_alive(pid), "the broker to end")
        assert "lock was removed" in str(row_of("broker", "status", "--data-dir", tmp_path)["reason"])


def test_status_in_every_output_format(tmp_path: Path):
    with running(tmp_path) as row:
        table = kgctl("broker", "status", "--data-dir", tmp_path)
        assert table.returncode == 0
        sheet = dict(line.split(maxsplit=1) for line in table.stdout.splitlines())
        assert (sheet["STATE"], sheet["ADDRESS"], sheet["PID"]) == ("running", row["address"], str(row["pid"]))
        assert list(sheet) == [
            "STATE",
            "ADDRESS",
            "PID",
            "DURABILITY",
            "STARTED",
            "DATA-DIR",
            "LOG-FILE",
            "SECURITY-PROTOCOL",
        ]
        as_yaml = kgctl("-o", "yaml", "broker", "status", "--data-dir", tmp_path).stdout
        assert yaml.safe_load(as_yaml)["rows"] == [row]
        as_csv = kgctl("broker", "-o", "csv", "status", "--data-dir", tmp_path).stdout
        assert [found["address"] for found in csv.DictReader(as_csv.splitlines())] == [row["address"]]


def test_ignored_options_are_listed(tmp_path: Path):
    with running(tmp_path, "--override", "num.io.threads=8", "--override", "num.partitions=2") as row:
        assert row["unimplemented_options"] == ["num.io.threads"]
        assert "num.io.threads" in kgctl("broker", "status", "--data-dir", tmp_path).stderr


def test_a_second_start_names_the_process_that_holds_the_data_directory(tmp_path: Path):
    with running(tmp_path) as row:
        ended = kgctl("broker", "start", "--data-dir", tmp_path, "--listen", "127.0.0.1:0")
        assert ended.returncode == 6
        assert f"pid {row['pid']}, at {row['address']}" in ended.stderr
        assert ended.stderr.count("\n") == 1
        assert ended.stdout == ""
        again = kgctl("broker", "start", "--foreground", "--data-dir", tmp_path, "--listen", "127.0.0.1:0")
        assert (again.returncode, again.stderr) == (ended.returncode, ended.stderr)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--override", "num.partitons=3"], 2, "Error: unknown option num.partitons; did you mean num.partitions?"),
        (["--listen", "0.0.0.0:0"], 2, "--insecure-listen"),
        (["--listen", "192.0.2.1:0", "--insecure-listen"], 15, "cannot listen on 192.0.2.1:0"),
    ],
)
@pytest.mark.parametrize("foreground", [False, True])
def test_a_failed_start_prints_the_error_of_the_broker(
    tmp_path: Path, arguments: list[str], code: int, message: str, foreground: bool
):
    ended = kgctl("broker", "start", "--data-dir", tmp_path, *["--foreground"] * foreground, *arguments)
    assert ended.returncode == code
    assert ended.stderr.startswith("Error: ")
    assert message in ended.stderr
    assert ended.stderr.count("\n") == 1
    assert holder_pid(tmp_path) is None


def test_an_unknown_durability_is_a_usage_error(tmp_path: Path):
    ended = kgctl("broker", "start", "--data-dir", tmp_path, "--durability", "luck")
    assert ended.returncode == 2
    assert "'luck' is not one of power, process" in ended.stderr
    assert "--parent" not in ended.stderr
    assert list(tmp_path.iterdir()) == []


def test_status_shows_how_the_last_run_ended(tmp_path: Path):
    with running(tmp_path) as row:
        kgctl("broker", "stop", "--data-dir", tmp_path)
        stopped = row_of("broker", "status", "--data-dir", tmp_path)
        assert stopped["reason"] == "stopped: SIGTERM"
        assert stopped["ended"] is not None
    with running(tmp_path) as row:
        os.kill(int(str(row["pid"])), signal.SIGKILL)
        eventually(lambda: holder_pid(tmp_path) is None, "the broker to end")
        assert "killed" in str(row_of("broker", "status", "--data-dir", tmp_path)["reason"])
    assert kgctl("broker", "start", "--data-dir", tmp_path, "--listen", "192.0.2.1:0", "--insecure-listen").returncode
    assert "cannot listen on" in str(row_of("broker", "status", "--data-dir", tmp_path)["reason"])


def test_a_start_prints_the_warnings_of_the_broker(tmp_path: Path):
    with running(tmp_path):
        pass
    ended = kgctl("broker", "start", "--data-dir", tmp_path, "--listen", "0.0.0.0:0", "--insecure-listen")
    kgctl("broker", "stop", "--data-dir", tmp_path)
    assert ended.returncode == 0
    first, second = ended.stderr.splitlines()
    assert first.startswith("Warning: the previous run (pid ")
    assert "advertised.listeners" in second


def test_relative_paths_are_relative_to_the_directory_of_the_caller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    Path("my.properties").write_text("num.io.threads=1\n")
    arguments = ["--config", "my.properties", "--ready-file", "ready-here.json", "--log-file", "here.log"]
    with running(Path("d").absolute(), *arguments) as row:
        assert row["unimplemented_options"] == ["num.io.threads"]
        assert json.loads(Path("ready-here.json").read_text())["address"] == row["address"]
        assert Path("here.log").exists()


def test_other_commands_find_the_default_broker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.delenv("KGCTL_BOOTSTRAP", raising=False)
    data_dir = tmp_path / "kgctl" / "broker"
    try:
        assert kgctl("broker", "start", "--listen", "127.0.0.1:0").returncode == 0
        assert row_of("broker", "status")["data_dir"] == str(data_dir)
        assert kgctl("topics", "create", "found-it").returncode == 0
        assert "found-it" in kgctl("topics", "list").stdout
        assert kgctl("broker", "stop").returncode == 0
        assert kgctl("broker", "status").returncode == 3
    finally:
        kgctl("broker", "stop")


def test_start_in_the_foreground_replaces_the_process_with_the_broker(tmp_path: Path):
    command = [*KGCTL, "broker", "start", "--foreground", "--data-dir", str(tmp_path), "--listen", "127.0.0.1:0"]
    program = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=broker_environment())
    try:
        assert eventually(lambda: holder_pid(tmp_path), "the broker to start") == program.pid
        eventually((tmp_path / "ready.json").exists, "the ready file")
        program.terminate()
        _, stderr = program.communicate(timeout=PATIENCE_S)
        assert program.returncode == 0
        assert "serving at" in stderr
    finally:
        program.kill()
        program.communicate()


def test_logs_show_the_last_lines(tmp_path: Path):
    with running(tmp_path):
        ended = kgctl("broker", "logs", "--data-dir", tmp_path)
        assert ended.returncode == 0
        assert "serving at" in ended.stdout
        assert kgctl("broker", "logs", "-n", "0", "--data-dir", tmp_path).stdout == ""
        assert kgctl("broker", "logs", "-n", "1", "--data-dir", tmp_path).stdout.count("\n") == 1


def test_logs_as_json_are_one_object_per_line(tmp_path: Path):
    (tmp_path / "broker.log").write_text(
        '2025-01-02T03:04:05.678Z WARNING broker.daemon a warning: with "quotes"\nTraceback (most recent call last):\n'
    )
    ended = kgctl("broker", "logs", "--data-dir", tmp_path, "-o", "json")
    assert [json.loads(line) for line in ended.stdout.splitlines()] == [
        {
            "time": "2025-01-02T03:04:05.678Z",
            "level": "WARNING",
            "logger": "broker.daemon",
            "message": 'a warning: with "quotes"',
        },
        {"time": None, "level": None, "logger": None, "message": "Traceback (most recent call last):"},
    ]


@pytest.mark.parametrize("output", ["yaml", "csv"])
def test_logs_refuse_other_output_formats(tmp_path: Path, output: str):
    (tmp_path / "broker.log").write_text("one\n")
    ended = kgctl("broker", "logs", "--data-dir", tmp_path, "-o", output)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert f"'{output}' is not available for log lines" in ended.stderr


def test_logs_follow_through_a_rotation(tmp_path: Path):
    log = tmp_path / "broker.log"
    log.write_text("one\ntwo\n")
    command = [*KGCTL, "broker", "logs", "-f", "-n", "1", "--data-dir", str(tmp_path)]
    program = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=broker_environment())
    try:
        assert program.stdout is not None
        assert program.stdout.readline() == "two\n"
        with log.open("a") as stream:
            stream.write("three\n")
        assert program.stdout.readline() == "three\n"
        log.rename(tmp_path / "broker.log.1")
        log.write_text("four\n")
        assert program.stdout.readline() == "four\n"
        program.send_signal(signal.SIGINT)
        program.communicate(timeout=PATIENCE_S)
        assert program.returncode == 130
    finally:
        program.kill()
        program.communicate()


def test_logs_without_a_log_file_exit_with_5(tmp_path: Path):
    ended = kgctl("broker", "logs", "--data-dir", tmp_path)
    assert ended.returncode == 5
    assert str(tmp_path) in ended.stderr
