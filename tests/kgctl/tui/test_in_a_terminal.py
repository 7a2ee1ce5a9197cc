"""The dashboard in a terminal: rebalances of real consumers, lost brokers, exit, colours, resizing."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.harness import ROOT
from tests.harness.clusters import Cluster, fresh
from tests.harness.commandline import Kgctl, fill, member_of
from tests.harness.reference_kafka import ReferenceKafka
from tests.harness.terminal import Terminal, terminal
from tests.kgctl.tui.test_rebalance import described

KGCTL = [sys.executable, "-m", "kgctl"]
CURRENT = "●"


@contextmanager
def consumer(
    cluster: Cluster, group: str, topic: str, client_id: str, session_ms: int
) -> Iterator[subprocess.Popen[bytes]]:
    """A consumer process with confluent-kafka, killed at the end of the block."""
    command = [sys.executable, "-m", "kgctl.demo.consumer", "--bootstrap", cluster.bootstrap_servers]
    command += ["--group", group, "--topic", topic, "--client-id", client_id, "--session-timeout-ms", str(session_ms)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, cwd=ROOT) as running:
        try:
            yield running
        finally:
            running.kill()


def dashboard(cluster: Cluster, *arguments: str) -> list[str]:
    return [*KGCTL, "ui", "--bootstrap", cluster.bootstrap_servers, "--interval", "0.2", *arguments]


def state_on(screen: str) -> str:
    """The highlighted state of the state machine, which is below the header."""
    _, found, after = screen.partition("\n")[2].partition(CURRENT)
    return after.split()[0] if found and after.split() else ""


@pytest.mark.timeout(180)
def test_a_killed_consumer_shows_as_a_rebalance_with_its_cause(own_cluster: Cluster) -> None:
    cluster, group, topic = own_cluster, "orders-app", fresh("orders")
    kgctl = Kgctl(cluster.bootstrap_servers)
    assert kgctl("topics", "create", topic, "--partitions", 6).exit_code == 0
    fill(kgctl, topic, [5] * 6)
    with ExitStack() as stack:
        victim, slow, _ = [
            stack.enter_context(consumer(cluster, group, topic, name, session_ms))
            for name, session_ms in (("victim", 6000), ("slow", 30_000), ("quick", 6000))
        ]
        window: Terminal = stack.enter_context(terminal(dashboard(cluster), 120, 40))
        window.wait_for(lambda screen: group in screen and "Stable" in screen, "the group in the list", 60)
        window.press("Enter")
        window.wait_for(
            lambda screen: state_on(screen) == "Stable" and "Members 3" in screen, "three members, Stable", 60
        )

        # One consumer dies and another is stopped, so that the group stays in PreparingRebalance for a while.
        slow.send_signal(signal.SIGSTOP)
        victim.kill()
        screen = window.wait_for(lambda screen: state_on(screen) == "Preparing", "Preparing", 30)
        assert "slow" in screen
        slow.send_signal(signal.SIGCONT)
        screen = window.wait_for(
            lambda screen: state_on(screen) == "Stable" and "Members 2" in screen, "Stable with two", 60
        )
        if not isinstance(cluster, ReferenceKafka):
            screen = window.wait_for(lambda screen: "victim timed out" in screen, "the cause on the timeline", 10)
            history = kgctl.rows("groups", "history", group)
            assert history[-1]["cause"] == "session timed out"
            assert f" {history[-1]['generation']}  victim timed out" in screen
        else:
            window.wait_for(lambda screen: "-1" in screen and "observed" in screen, "an observed rebalance", 10)
        window.press("q")
        window.wait_for(lambda screen: "exit=0" in screen, "the exit", 20)


@pytest.mark.timeout(60)
def test_a_lost_broker_is_reported_and_found_again(own_cluster: Cluster) -> None:
    kgctl = Kgctl(own_cluster.bootstrap_servers)
    topic = fresh("orders")
    assert kgctl("topics", "create", topic).exit_code == 0
    kgctl.commit("billing", topic, p0=0)
    with terminal(dashboard(own_cluster)) as window:
        window.wait_for(lambda screen: "billing" in screen and "live" in screen, "the group")
        own_cluster.kill()
        screen = window.wait_for(lambda screen: "NO ANSWER" in screen, "the lost broker")
        assert "billing" in screen
        own_cluster.restart()
        window.wait_for(
            lambda screen: "live" in screen and "NO ANSWER" not in screen and "billing" in screen, "the group again"
        )


def test_an_unreachable_cluster_is_one_clear_page_with_retries(tmp_path: Path) -> None:
    with terminal([*KGCTL, "ui", "--bootstrap", "127.0.0.1:1"]) as window:
        screen = window.wait_for(lambda screen: "Attempts: 2" in screen, "a second attempt")
        assert "No answer from 127.0.0.1:1" in screen
        assert "kgctl broker start" in screen
        assert "Traceback" not in screen
        window.press("q")
        window.wait_for(lambda screen: "exit=0" in screen, "the exit", 20)


@pytest.mark.parametrize("how", ["q", "C-c", "SIGTERM"])
def test_the_terminal_is_restored_on_exit(our_cluster: Cluster, how: str) -> None:
    with terminal(dashboard(our_cluster)) as window:
        window.wait_for(lambda screen: "Groups" in screen and "live" in screen, "the dashboard")
        if how == "SIGTERM":
            window.terminate()
        else:
            window.press(how)
        screen = window.wait_for(lambda screen: "exit=" in screen, "the exit", 20)
        assert "exit=0" in screen
        assert "Groups" not in screen


@pytest.mark.parametrize("no_color", ["", "1"])
def test_no_color_removes_all_colours(our_cluster: Cluster, no_color: str) -> None:
    with terminal(dashboard(our_cluster), environment={"NO_COLOR": "1"} if no_color else {}) as window:
        window.wait_for(lambda screen: "Groups" in screen and "live" in screen, "the dashboard")
        assert is_grey(window.screen_with_colours()) == bool(no_color)


# Of the 256-colour palette: the grey ramp, and the greys of the colour cube.
GREYS = {*range(232, 256), 0, 7, 8, 15, 16, 59, 102, 145, 188, 231}


def is_grey(text: str) -> bool:
    """Whether every colour has about equal shares of red, green and blue."""
    found = re.findall(r"[34]8;2;(\d+);(\d+);(\d+)|[34]8;5;(\d+)", text)
    assert found, "neither 24-bit nor palette colours"
    return all(
        max(map(int, one[:3])) - min(map(int, one[:3])) <= 2 if one[0] else int(one[3]) in GREYS for one in found
    )


def test_the_window_can_be_resized(our_cluster: Cluster) -> None:
    with terminal(dashboard(our_cluster), 120, 40) as window:
        window.wait_for(lambda screen: "Groups" in screen and "live" in screen, "the dashboard")
        window.resize(80, 24)
        window.wait_for(lambda screen: "Quit" in screen.splitlines()[-1], "the footer in the last line")
        window.resize(40, 10)
        window.wait_for(lambda screen: len(screen.splitlines()) == 10 and "kgctl" in screen, "the small screen")


def test_a_paste_with_the_key_of_a_dialog_is_its_reason_and_executes_nothing(our_cluster: Cluster) -> None:
    kgctl, group, topic = Kgctl(our_cluster.bootstrap_servers), fresh("g"), fresh("t")
    assert kgctl("topics", "create", topic).exit_code == 0
    with member_of(kgctl, group, {topic: [0]}), terminal(dashboard(our_cluster, group), 120, 40) as window:
        window.wait_for(lambda screen: "Stable" in screen and "live" in screen, "the group")
        before = described(kgctl, group).generation
        window.press("-l", "b" + "Bye, why xyz? dUq" + "\t\t\r\r")
        window.wait_for(lambda screen: "Bye, why xyz? dUq" in screen and "1 member, current" in screen, "the reason")
        window.press("Escape")
        window.wait_for(lambda screen: "Bye, why" not in screen, "the group again")
        assert described(kgctl, group).generation == before
