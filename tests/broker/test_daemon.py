"""`python -m broker`: start, stop, recovery, and one line and one exit code for each failure."""

from __future__ import annotations

import errno
import json
import os
import re
import resource
import signal
import socket
import stat
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Producer

from broker.directory_lock import hold
from broker.local import broker_command, broker_environment
from tests.harness.broker_program import PATIENCE_S, Program, accepts, eventually, refused, started


def test_the_ready_file_holds_the_address_once_requests_are_served(tmp_path: Path):
    with started(tmp_path / "d", "--ready-file", str(tmp_path / "mine.json")) as program:
        ready = program.ready()
        assert ready.pid == program.pid
        assert ready.data_dir == str(tmp_path / "d")
        assert ready.durability == "power"
        assert re.fullmatch(r"127\.0\.0\.1:\d+", ready.address)
        assert accepts(ready.address)
        eventually((tmp_path / "mine.json").exists, "the second ready file")
        assert json.loads((tmp_path / "mine.json").read_text())["address"] == ready.address


def test_files_are_readable_only_by_the_user(tmp_path: Path):
    with started(tmp_path / "a" / "d") as program:
        program.ready()
        for path in [tmp_path / "a" / "d", *(tmp_path / "a" / "d").rglob("*")]:
            expected = 0o700 if path.is_dir() else 0o600
            assert stat.S_IMODE(path.stat().st_mode) == expected, path


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_stops_it_cleanly_and_removes_the_ready_file(tmp_path: Path, number: signal.Signals):
    with started(tmp_path) as program:
        program.ready()
        program.process.send_signal(number)
        code, stderr = program.end()
        assert code == 0
        assert not program.ready_path.exists()
        assert "Traceback" not in stderr
    assert number.name in (tmp_path / "broker.log").read_text()


def test_a_killed_broker_starts_again_on_its_data(tmp_path: Path):
    with started(tmp_path) as program:
        program.ready()
        program.process.kill()
        program.process.wait()
        assert program.ready_path.exists()
    with started(tmp_path) as program:
        eventually(lambda: program.ready().pid == program.pid, "the new ready file")


def test_a_second_start_names_the_process_that_holds_the_data_directory(tmp_path: Path):
    with started(tmp_path) as first:
        ready = first.ready()
        code, line = refused(tmp_path)
        assert code == 6
        assert f"pid {first.pid}, at {ready.address}" in line
        assert first.process.poll() is None
        assert first.ready_path.exists()


def test_a_port_in_use_is_reported(tmp_path: Path):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        address = f"127.0.0.1:{other.getsockname()[1]}"
        assert refused(tmp_path, listen=address) == (
            15,
            f"Error: cannot listen on {address}: {os.strerror(errno.EADDRINUSE)}",
        )
        assert not (tmp_path / "ready.json").exists()


def test_an_address_of_another_machine_is_reported(tmp_path: Path):
    code, line = refused(tmp_path, "--insecure-listen", listen="192.0.2.1:0")
    assert code == 15
    assert "cannot listen on 192.0.2.1:0" in line


def test_metrics_are_served_at_the_address_in_the_ready_file(tmp_path: Path):
    with started(tmp_path, "--metrics-listen", "127.0.0.1:0") as program:
        url = program.ready().metrics
        assert url is not None
        with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:
            assert b"\nkgctl_broker_info{" in answer.read()
        code, line = refused(tmp_path / "other", "--metrics-listen", url.split("/")[2])
    assert (code, line) == (15, f"Error: cannot listen on {url.split('/')[2]}: {os.strerror(errno.EADDRINUSE)}")


@pytest.mark.parametrize("address", ["0.0.0.0:0", "192.0.2.1:0", ":0"])
def test_metrics_are_served_on_this_machine_only(tmp_path: Path, address: str):
    code, line = refused(tmp_path, "--insecure-listen", "--metrics-listen", address)
    assert (code, line) == (
        2,
        f"Error: --metrics-listen {address}: metrics are served on loopback addresses only, such as 127.0.0.1:9464",
    )


def test_an_address_that_other_machines_can_reach_requires_an_option(tmp_path: Path):
    code, line = refused(tmp_path, listen="0.0.0.0:0")
    assert code == 2
    assert "--insecure-listen" in line
    with started(tmp_path, "--insecure-listen", listen="0.0.0.0:0") as program:
        ready = program.ready()
        assert ready.address.startswith("127.0.0.1:")
        assert accepts(ready.address)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--override", "num.partitons=3"], "unknown option num.partitons; did you mean num.partitions?"),
        (["--override", "num.partitions=0"], "num.partitions=0: must be at least 1"),
        (
            ["--override", "ssl.key.password=hidden"],
            "ssl.key.password: a secret in the arguments is visible to other users",
        ),
        (["--override", "listener.name.plaintext.ssl.key.password=hidden"], "use --config FILE"),
        (
            ["--config", "/nonexistent/broker.properties"],
            "cannot read config file /nonexistent/broker.properties: No such file or directory",
        ),
        (["--listen", "nowhere"], "not HOST:PORT"),
    ],
)
def test_a_wrong_configuration_is_reported(tmp_path: Path, arguments: list[str], message: str):
    code, line = refused(tmp_path / "d", *arguments, listen=None)
    assert code == 2
    assert message in line
    assert "hidden" not in line
    assert not (tmp_path / "d").exists()


def test_options_come_from_files_and_overrides(tmp_path: Path):
    (tmp_path / "my.properties").write_text("listeners=PLAINTEXT://127.0.0.1:0\nnum.io.threads=8\n")
    arguments = ["--config", str(tmp_path / "my.properties"), "--override", "log.dirs=/x"]
    with started(tmp_path / "d", *arguments, listen=None) as program:
        assert program.ready().unimplemented_options == ["log.dirs", "num.io.threads"]
        program.process.terminate()
        code, stderr = program.end()
    assert code == 0
    assert stderr.count("num.io.threads is not implemented") == 1


def test_wrong_arguments_are_reported():
    ended = subprocess.run([*broker_command(), "--nonsense"], capture_output=True, text=True, env=broker_environment())
    assert ended.returncode == 2
    assert ended.stderr == "Error: unrecognized arguments: --nonsense\n"


def test_help_documents_every_exit_code():
    from broker.server import failures

    ended = subprocess.run([*broker_command(), "--help"], capture_output=True, text=True, env=broker_environment())
    documented = {int(code) for code in re.findall(r"^ +(\d+)  ", ended.stdout, re.MULTILINE)}
    assert documented == {
        0,
        *(code for name, code in vars(failures).items() if name.isupper() and isinstance(code, int)),
    }


def test_internal_options_are_not_in_the_help():
    ended = subprocess.run([*broker_command(), "--help"], capture_output=True, text=True, env=broker_environment())
    assert not {"--background", "--starter", "--parent", "--temporary"} & set(re.findall(r"--[a-z-]+", ended.stdout))
    assert "--accept-loss" in ended.stdout


@pytest.mark.parametrize("arguments", [[], ["--override", "nonsense=1"]])
def test_the_next_start_removes_the_ready_file_of_a_killed_broker(tmp_path: Path, arguments: list[str]):
    mine = tmp_path / "mine.json"
    with started(tmp_path / "d", "--ready-file", str(mine)) as program:
        program.ready()
        eventually(mine.exists, "the second ready file")
        program.process.kill()
        program.process.wait()
    assert mine.exists()
    # Hold the lock so that the start fails before it serves.
    lock = hold(tmp_path / "d")
    refused(tmp_path / "d", "--ready-file", str(mine), *arguments)
    lock.close()
    assert not mine.exists()
    assert not (tmp_path / "d" / "ready.json").exists()


def test_a_refused_start_keeps_the_ready_file_of_the_running_broker(tmp_path: Path):
    with started(tmp_path / "d", "--ready-file", str(tmp_path / "mine.json")) as program:
        program.ready()
        eventually((tmp_path / "mine.json").exists, "the second ready file")
        assert refused(tmp_path / "d", "--ready-file", str(tmp_path / "mine.json"))[0] == 6
        assert (tmp_path / "mine.json").exists()


def test_a_failed_start_keeps_the_ready_file_of_the_broker_of_another_directory(tmp_path: Path):
    mine = tmp_path / "mine.json"
    with started(tmp_path / "d", "--ready-file", str(mine)) as program:
        address = program.ready().address
        eventually(mine.exists, "the second ready file")
        assert refused(tmp_path / "other", "--ready-file", str(mine), listen=address)[0] == 15
        assert json.loads(mine.read_text())["pid"] == program.pid


def test_a_ready_file_where_every_user_can_replace_it_is_refused(tmp_path: Path):
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    code, line = refused(tmp_path / "d", "--ready-file", str(tmp_path / "open" / "r.json"))
    assert code == 2
    assert f"cannot write the ready file {tmp_path}/open/r.json: every user may replace files" in line
    assert list((tmp_path / "open").iterdir()) == []


def test_a_start_after_a_kill_reports_it_and_what_was_recovered(tmp_path: Path):
    with started(tmp_path) as program:
        producer = Producer({"bootstrap.servers": program.ready().address})
        producer.produce("t", b"one")
        assert producer.flush(20) == 0
        program.process.kill()
        program.process.wait()
    with started(tmp_path) as second:
        second.ready()
        second.process.terminate()
        _, stderr = second.end()
    assert f"the previous run (pid {program.pid}) did not stop cleanly: killed" in stderr
    assert "recovered t-0 up to offset 1" in stderr
    with started(tmp_path) as third:
        third.ready()
        third.process.terminate()
        _, stderr = third.end()
    assert "previous run" not in stderr
    assert "recovered" not in stderr


def test_a_directory_with_other_files_is_refused(tmp_path: Path):
    (tmp_path / "thesis.tex").write_text("")
    code, line = refused(tmp_path)
    assert code == 17
    assert "is not empty and is not a broker's data directory" in line
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_an_address_that_other_machines_can_reach_causes_a_warning(tmp_path: Path):
    with started(tmp_path, "--insecure-listen", "--background", listen="0.0.0.0:0") as program:
        assert program.process.stderr is not None
        assert "advertised.listeners" in program.process.stderr.read()


@pytest.mark.parametrize("path", ["link", "link/below"])
def test_links_in_the_path_of_the_data_directory_are_followed(tmp_path: Path, path: str):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    for _ in range(2):
        with started(tmp_path / path) as program:
            assert program.ready().data_dir == str(tmp_path / path)
            program.process.terminate()
            assert program.end()[0] == 0
    assert {found.name for found in (tmp_path / "real").rglob("store.db")} == {"store.db"}


def test_a_data_directory_that_is_a_file_is_reported(tmp_path: Path):
    (tmp_path / "d").write_text("")
    code, line = refused(tmp_path / "d")
    assert code == 17
    assert str(tmp_path / "d") in line


@pytest.mark.skipif(os.geteuid() == 0, reason="root can write anywhere")
def test_a_read_only_data_directory_is_reported(tmp_path: Path):
    (tmp_path / "d").mkdir(mode=0o500)
    code, line = refused(tmp_path / "d")
    assert code == 17
    assert "Permission denied" in line


def limit_descriptors(count: int) -> Callable[[], None]:
    return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (count, count))


def test_too_few_file_descriptors_are_reported(tmp_path: Path):
    code, line = refused(tmp_path, preexec_fn=limit_descriptors(63))
    assert code == 14
    assert "too few file descriptors: ulimit -n is 63" in line
    with started(tmp_path, preexec_fn=limit_descriptors(64)) as program:
        assert accepts(program.ready().address)


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")
def test_a_full_disk_at_start_is_reported(tmp_path: Path, small_disk: list[str]):
    (tmp_path / "d").mkdir()
    code, line = refused(tmp_path / "d", before=[*small_disk, "size=16k", str(tmp_path / "d")])
    assert code == 13
    assert "no space left" in line


def test_a_second_signal_ends_it_immediately(tmp_path: Path):
    with started(tmp_path) as program:
        address = program.ready().address
        host, _, port = address.rpartition(":")
        # An open connection delays the clean stop.
        with socket.create_connection((host, int(port))):
            program.process.send_signal(signal.SIGSTOP)
            program.process.send_signal(signal.SIGTERM)
            program.process.send_signal(signal.SIGINT)
            program.process.send_signal(signal.SIGCONT)
            code, _ = program.end()
    assert code in (128 + signal.SIGINT, 128 + signal.SIGTERM)


def test_it_stops_when_the_pipe_on_stdin_ends(tmp_path: Path):
    with started(tmp_path, "--parent", str(os.getpid()), stdin=subprocess.PIPE) as program:
        program.ready()
        close_stdin(program)
        assert program.process.wait(PATIENCE_S) == 0
    assert "the parent process ended" in (tmp_path / "broker.log").read_text()


def test_it_stops_if_its_parent_is_not_the_given_process(tmp_path: Path):
    with started(tmp_path, "--parent", "1", stdin=subprocess.PIPE) as program:
        assert program.process.wait(PATIENCE_S) == 0


def test_a_start_ends_with_the_program_that_started_it(tmp_path: Path):
    with started(tmp_path, "--starter", stdin=subprocess.PIPE) as program:
        close_stdin(program)
        assert program.process.wait(PATIENCE_S) in (-signal.SIGIO, 128 + signal.SIGIO)
    assert not (tmp_path / "ready.json").exists()


def test_a_broker_that_serves_stops_cleanly_if_its_start_is_not_confirmed(tmp_path: Path):
    with started(tmp_path, "--starter", stdin=subprocess.PIPE) as program:
        program.ready()
        close_stdin(program)
        assert program.process.wait(PATIENCE_S) == 0
    assert "stopping: the program that started the broker ended" in (tmp_path / "broker.log").read_text()


def test_a_confirmed_broker_outlives_the_program_that_started_it(tmp_path: Path):
    with started(tmp_path, "--starter", stdin=subprocess.PIPE) as program:
        program.ready()
        assert program.process.stdin is not None
        program.process.stdin.write("+")
        close_stdin(program)
        eventually(lambda: os.readlink(f"/proc/{program.pid}/fd/0") == os.devnull, "the confirmation to be read")
        program.process.terminate()
        assert program.process.wait(PATIENCE_S) == 0
    assert "stopping: SIGTERM" in (tmp_path / "broker.log").read_text()


def close_stdin(program: Program) -> None:
    assert program.process.stdin is not None
    program.process.stdin.close()
    program.process.stdin = None


def test_a_background_broker_closes_stderr_once_it_is_ready(tmp_path: Path):
    with started(tmp_path, "--background", "--override", "num.io.threads=8") as program:
        assert program.process.stderr is not None
        stderr = program.process.stderr.read()
        assert program.process.poll() is None
        ready = program.ready()
        assert ready.pid == program.pid
    assert stderr.count("\n") == 1
    assert "num.io.threads" in stderr
    assert "serving at" in (tmp_path / "broker.log").read_text()


def test_the_log_file_can_be_elsewhere(tmp_path: Path):
    with started(tmp_path / "d", "--log-file", str(tmp_path / "other.log")) as program:
        assert program.ready().log_file == str(tmp_path / "other.log")
        eventually(lambda: "serving at" in (tmp_path / "other.log").read_text(), "the line in the log")
    assert not (tmp_path / "d" / "broker.log").exists()
