"""What a terminal gets: tables of its width, colours, and no control characters; a pipe gets Kafka's columns."""

from __future__ import annotations

import fcntl
import os
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator

import pytest

from tests.harness.clusters import Cluster, fresh
from tests.harness.commandline import Kgctl, fill, member_of

ESCAPES = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture(scope="module")
def describe(our_cluster: Cluster) -> Iterator[list[str]]:
    """Arguments that describe a group with one member."""
    kgctl, topic, group = Kgctl(our_cluster.bootstrap_servers), fresh("t"), fresh("g")
    assert kgctl("topics", "create", topic).exit_code == 0
    fill(kgctl, topic, [7])
    with member_of(kgctl, group, {topic: [0]}):
        yield ["groups", "describe", group, "--bootstrap", our_cluster.bootstrap_servers]


def test_a_terminal_gets_a_table_that_fits_and_a_pipe_gets_kafkas(describe: list[str]) -> None:
    piped = in_a_pipe(describe, COLUMNS="40")
    assert max(map(len, piped.splitlines())) > 80

    shown, said = on_terminal(describe, columns=80, NO_COLOR="1")
    assert max(map(len, shown.splitlines())) <= 80
    assert shown.splitlines()[0].split()[-1] == "CONSUMER-ID"
    assert said == "To fit: HOST, CLIENT-ID left out, names shortened; -o wide shows all.\n"

    for all_of_it, columns in (([*describe, "-o", "wide"], 80), (describe, 500), (describe, 0)):
        assert on_terminal(all_of_it, columns, NO_COLOR="1") == (piped, "")


def test_a_terminal_gets_colours_and_the_same_text(describe: list[str]) -> None:
    plain, _ = on_terminal([*describe, "--state"], columns=200, NO_COLOR="1")
    colored, _ = on_terminal([*describe, "--state"], columns=200)
    assert "\x1b" not in plain
    assert ESCAPES.sub("", colored) == plain
    assert colored.startswith("\x1b[1mGROUP")
    assert "\x1b[32mStable\x1b[0m" in colored


@pytest.mark.parametrize(
    ("arguments", "environment", "is_colored"),
    [
        ([], {"NO_COLOR": "1"}, False),
        ([], {"NO_COLOR": ""}, True),
        ([], {"TERM": "dumb"}, False),
        (["--color", "never"], {}, False),
        (["--color", "always"], {"NO_COLOR": "1"}, True),
        (["--color", "auto"], {}, True),
    ],
)
def test_the_option_and_the_environment_decide_about_colours(
    describe: list[str], arguments: list[str], environment: dict[str, str], is_colored: bool
) -> None:
    shown, _ = on_terminal([*describe, *arguments], 200, **environment)
    assert ("\x1b" in shown) is is_colored


def test_a_pipe_gets_colours_only_on_request(describe: list[str]) -> None:
    plain = in_a_pipe(describe)
    colored = in_a_pipe([*describe, "--color", "always"])
    assert "\x1b" not in plain
    assert colored != plain
    assert ESCAPES.sub("", colored) == plain


def test_csv_spells_out_control_characters_on_a_terminal_only(our_cluster: Cluster) -> None:
    kgctl, topic, group = Kgctl(our_cluster.bootstrap_servers), fresh("t"), fresh("\x1b[31mred\x07")
    assert kgctl("topics", "create", topic).exit_code == 0
    kgctl.commit(group, topic, p0=0)
    arguments = ["groups", "list", "-o", "csv", "--bootstrap", our_cluster.bootstrap_servers]
    shown, _ = on_terminal(arguments, columns=80)
    assert "\\x1b[31mred\\x07" in shown
    assert not set("\x1b\x07") & set(shown)
    assert group in in_a_pipe(arguments)


def in_a_pipe(arguments: list[str], **environment: str) -> str:
    command = [sys.executable, "-m", "kgctl", *arguments]
    return subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, check=True).stdout


def on_terminal(arguments: list[str], columns: int, **environment: str) -> tuple[str, str]:
    """stdout of kgctl on a terminal of that width, and stderr."""
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", 24, columns, 0, 0))
    inherited = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "NO_COLOR")}
    command = [sys.executable, "-m", "kgctl", *arguments]
    with subprocess.Popen(
        command,
        stdout=theirs,
        stderr=subprocess.PIPE,
        text=True,
        env={**inherited, "TERM": "xterm-256color", **environment},
    ) as child:
        os.close(theirs)
        shown = b""
        while True:
            try:
                piece = os.read(ours, 1 << 16)
            except OSError:
                break
            if not piece:
                break
            shown += piece
        os.close(ours)
        assert child.stderr is not None
        said = child.stderr.read()
        assert child.wait(20) == 0, said
    return shown.decode().replace("\r\n", "\n"), said
