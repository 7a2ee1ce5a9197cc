"""`kgctl broker start` forks the broker before it loads the command line, if its words are simple."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from broker.local import broker_environment, find_holder, holder_pid
from kgctl.app import load
from kgctl.commands.broker import early_start
from kgctl.commands.shared.settings import Settings
from tests.harness.broker_program import PATIENCE_S, eventually, is_alive

KGCTL = [sys.executable, "-P", "-m", "kgctl"]
SIMPLE = [
    [],
    ["--data-dir", "./data//x/", "--listen=127.0.0.1:0"],
    ["--durability", "process", "--secure", "--accept-loss", "-o", "json"],
    ["--override", "a=b", "--override=num.partitions=3", "--config", "a.properties", "--config=./b"],
    ["--timeout", "10", "--output=yaml", "--insecure-listen", "--log-file", "../x", "--ready-file", "r"],
    ["--metrics-listen", "127.0.0.1:0"],
    ["--add-scram", "SCRAM-SHA-512=[name=u,password-file=p]", "--secure"],
]
OTHERS = [
    ["data"],
    ["--"],
    ["--foreground"],
    ["--if-not-running"],
    ["--context", "c"],
    ["--listen"],
    ["--listen", ""],
    ["--listen", "--secure"],
    ["--secure=SSL"],
    ["--data-dir", "a", "--data-dir", "b"],
    ["--durability", "none"],
    ["--timeout", "0"],
    ["--timeout", "soon"],
    ["-o=json"],
    ["-o", "json", "--output", "json"],
    ["-ojson"],
    ["-o", "template={{x}}"],
]


@pytest.fixture
def data_dir(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "data"
    pid = holder_pid(tmp_path / "data")
    if pid is not None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        eventually(lambda: holder_pid(tmp_path / "data") is None, "the broker to end")


def start(data_dir: Path, *words: str, **options: Any) -> subprocess.CompletedProcess[str]:
    where = ["--data-dir", str(data_dir), "--listen", "127.0.0.1:0"]
    return subprocess.run(
        [*KGCTL, "broker", "start", *where, *words],
        capture_output=True,
        text=True,
        env=broker_environment(),
        timeout=PATIENCE_S,
        **options,
    )


def comparable(options: Mapping[str, object]) -> dict[str, object]:
    """The options that are given, without the spelling of paths."""
    found: dict[str, object] = {}
    for name, value in options.items():
        values = [str(one) for one in value] if isinstance(value, (list, tuple)) else [str(value)]
        if value is True or value == []:
            found[name] = []
        elif value:
            found[name] = [os.path.abspath(one) if name in early_start.PATHS else one for one in values]
    return found


@pytest.mark.parametrize("words", SIMPLE, ids=" ".join)
def test_the_options_of_a_fork_are_those_that_typer_finds(words: list[str]) -> None:
    command, chosen = load("broker").commands["start"], Settings()
    # The command keeps its option for help, for the tests that follow, too.
    context = command.make_context("start", list(words), obj=chosen, help_option_names=["-h", "--help"])
    found = context.params
    given = {f"--{name.replace('_', '-')}": value for name, value in found.items() if value not in (None, False, ())}
    own = early_start.parse(words)
    assert own is not None
    assert float(own.pop("--timeout", ["30"])[0]) == chosen.timeout
    assert own.pop("--output", ["table"])[0] == chosen.output
    assert comparable({"--durability": ["power"]} | own) == comparable(given)


@pytest.mark.parametrize("words", OTHERS, ids=" ".join)
def test_words_that_need_a_second_look_fork_nothing(words: list[str]) -> None:
    assert early_start.parse(words) is None


def test_a_simple_start_forks_and_another_one_does_not(data_dir: Path) -> None:
    for words, is_fork in (((), True), (("--if-not-running",), False)):
        assert start(data_dir, *words).returncode == 0
        pid = holder_pid(data_dir)
        assert ("kgctl\0broker\0start" in Path(f"/proc/{pid}/cmdline").read_text()) == is_fork
        assert (
            subprocess.run([*KGCTL, "broker", "stop", "--data-dir", str(data_dir)], env=broker_environment()).returncode
            == 0
        )


def test_a_forked_broker_keeps_nothing_of_the_program_that_started_it(data_dir: Path) -> None:
    reader, writer = os.pipe()
    try:
        assert start(data_dir, pass_fds=[writer], cwd=data_dir.parent).returncode == 0
        os.close(writer)
        assert os.read(reader, 1) == b"", "another process holds the pipe"
    finally:
        os.close(reader)
    pid = holder_pid(data_dir)
    assert pid is not None
    assert os.getsid(pid) == pid
    assert os.readlink(f"/proc/{pid}/cwd") == "/"


def test_a_forked_broker_ends_with_a_program_that_does_not_complete_the_start(data_dir: Path) -> None:
    words = ["--data-dir", str(data_dir), "--listen", "127.0.0.1:0"]
    begin = (
        "from kgctl.commands.broker import early_start\n"
        f"early_start.begin({words!r}, None)\n"
        "from pathlib import Path\n"
        "from tests.harness.broker_program import eventually\n"
        f"eventually(Path({str(data_dir / 'ready.json')!r}).exists, 'the broker to serve')"
    )
    subprocess.run([sys.executable, "-P", "-c", begin], env=broker_environment(), check=True, timeout=PATIENCE_S)
    assert find_holder(data_dir) is None


def test_an_interrupt_while_modules_are_loaded_ends_the_broker_without_a_traceback(data_dir: Path) -> None:
    words = ["broker", "start", "--data-dir", str(data_dir), "--listen", "127.0.0.1:0"]
    interrupt = f"""
import sys
class Interrupt:
    def find_spec(self, name, *_):
        if name == "kgctl.commands.shared.settings":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupt())
sys.argv[1:] = {words!r}
from kgctl.__main__ import main
main()
"""
    done = subprocess.run(
        [sys.executable, "-P", "-c", interrupt], env=broker_environment(), capture_output=True, timeout=PATIENCE_S
    )
    assert (done.returncode, done.stderr) == (130, b"")
    assert find_holder(data_dir) is None


@pytest.mark.parametrize(
    ("number", "serves"), [(signal.SIGTERM, False), (signal.SIGHUP, True), (signal.SIGKILL, False)]
)
def test_a_signal_before_the_start_is_complete_leaves_no_broker(
    data_dir: Path, number: signal.Signals, serves: bool
) -> None:
    words = ["broker", "start", "--data-dir", str(data_dir), "--listen", "127.0.0.1:0"]
    die = f"""
import os, sys
from pathlib import Path
from tests.harness.broker_program import eventually
class Die:
    def find_spec(self, name, *_):
        if name == "kgctl.commands.shared.settings":
            print(Path("/proc/thread-self/children").read_text(), flush=True)
            if {serves}:
                eventually(Path({str(data_dir / "ready.json")!r}).exists, "the broker to serve")
            os.kill(os.getpid(), {int(number)})
sys.meta_path.insert(0, Die())
sys.argv[1:] = {words!r}
from kgctl.__main__ import main
main()
"""
    done = subprocess.run(
        [sys.executable, "-P", "-c", die], env=broker_environment(), capture_output=True, timeout=PATIENCE_S
    )
    assert done.returncode == -number
    broker = int(done.stdout)
    eventually(lambda: not is_alive(broker), "the broker to end")


def test_the_failure_of_a_forked_broker_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("")
    failed = start(tmp_path / "data")
    assert (failed.returncode, failed.stdout) == (17, "")
    assert failed.stderr.startswith("Error: ")
    assert len(failed.stderr.splitlines()) == 1


def test_an_early_start_loads_no_typer(data_dir: Path) -> None:
    words = ["broker", "start", "--data-dir", str(data_dir), "--listen", "127.0.0.1:0", "-o", "json"]
    watch = f"import sys; sys.argv[1:] = {words!r}; from kgctl.__main__ import main; main(); sys.exit('typer' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-P", "-c", watch], env=broker_environment(), capture_output=True, timeout=PATIENCE_S
    )
    assert (done.returncode, done.stderr) == (0, b"")
