"""--watch: a read again and again, in place on a terminal, one document after the other in a pipe."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.harness.commandline import Kgctl
from tests.harness.running import RunningBroker
from tests.harness.terminal import terminal

FAST = "0.2"


@contextmanager
def watching(*arguments: object) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "kgctl", *map(str, arguments), "--watch", FAST]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def test_a_pipe_gets_a_document_per_round_until_ctrl_c(kgctl: Kgctl) -> None:
    assert kgctl("topics", "create", "watched").exit_code == 0
    line = ["topics", "list", "-o", "jsonl", "--bootstrap", kgctl.bootstrap]
    with watching(*line) as process:
        assert process.stdout is not None
        rounds = [json.loads(process.stdout.readline()) for _ in range(4)]
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
        assert process.stderr is not None
        assert process.stderr.read() == ""
    assert all(row.keys() >= {"topic", "partitions"} for row in rounds)


def test_yaml_documents_are_separated(kgctl: Kgctl) -> None:
    with watching("groups", "list", "-o", "yaml", "--bootstrap", kgctl.bootstrap) as process:
        assert process.stdout is not None
        while process.stdout.readline() != "---\n":
            pass
        assert process.stdout.readline() == "version: 2\n"


def test_a_failure_in_the_first_round_ends_the_command() -> None:
    with watching("topics", "list", "--bootstrap", "127.0.0.1:1") as process:
        assert process.wait(20) == 7


def test_only_reads_are_repeated(kgctl: Kgctl) -> None:
    for line in (["topics", "delete", "t"], ["context", "list"]):
        result = kgctl("--watch", *line)
        assert (result.exit_code, result.stdout) == (2, ""), line
        assert "Only commands that read from a cluster are repeated." in result.stderr
    result = kgctl("--watch", "0", "topics", "list")
    assert (result.exit_code, "'0' is not a number of seconds above 0." in result.stderr) == (2, True)


def test_all_rounds_use_one_connection(kgctl: Kgctl, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    with watching("topics", "list", "-o", "name", "--trace", trace, "--bootstrap", kgctl.bootstrap) as process:
        assert process.stdout is not None
        found: list[str] = []
        while trace.read_text().count('"Metadata"') < 4 if trace.exists() else True:
            found.append(process.stdout.readline())
    assert trace.read_text().count('"open"') == 1


def test_a_terminal_is_redrawn_in_place_and_survives_an_outage(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    broker = RunningBroker(tmp_path / "data", listeners=f"PLAINTEXT://127.0.0.1:{port}")
    broker.start()
    try:
        kgctl = Kgctl(f"127.0.0.1:{port}")
        assert kgctl("topics", "create", "orders").exit_code == 0
        line = [sys.executable, "-m", "kgctl", "topics", "list", "--watch", FAST, "--bootstrap", str(kgctl.bootstrap)]
        with terminal(line) as screen:
            first = screen.wait_for(lambda text: "orders" in text, "the table")
            assert re.match(r"\d\d:\d\d:\d\d  every 0\.2 s: kgctl topics list --watch 0\.2 .*\n\nTOPIC ", first)
            broker.stop()
            away = screen.wait_for(lambda text: "refused" in text, "the outage")
            assert "orders" in away
            broker.start()
            assert kgctl("topics", "create", "payments").exit_code == 0
            back = screen.wait_for(lambda text: "payments" in text, "the return")
            assert (back.count("TOPIC "), "refused" in back) == (1, False)
            screen.press("C-c")
            screen.wait_for(lambda text: "exit=0" in text, "the end")
    finally:
        broker.stop()
