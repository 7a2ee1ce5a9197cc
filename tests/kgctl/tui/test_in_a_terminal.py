"""The dashboard in a terminal, with consumers in their own processes: what a person sees while a group rebalances."""

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
from tests.harness.commandline import Kgctl, fill
from tests.harness.terminal import Terminal, terminal

KGCTL = [sys.executable, "-m", "kgctl"]
LIT = "●"


@contextmanager
def consumer(
    cluster: Cluster, group: str, topic: str, client_id: str, session_ms: int
) -> Iterator[subprocess.Popen[bytes]]:
    """A member with confluent-kafka in a process of its own, which ends with the block."""
    command = [sys.executable, "-m", "kgctl.demo.consumer", "--bootstrap", cluster.bootstrap_servers]
    command += ["--group", group, "--topic", topic, "--client-id", client_id, "--session-timeout-ms", str(session_ms)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, cwd=ROOT) as running:
        try:
            yield running
        finally:
            running.kill()


def dashboard(cluster: Cluster, *words: str) -> list[str]:
    return [*KGCTL, "ui", "--bootstrap", cluster.bootstrap_servers, "--interval", "0.2", *words]


def lit(screen: str) -> str:
    """The state that is lit in the state machine."""
    _, found, after = screen.partition(LIT)
    return after.split()[0] if found and after.split() else ""


@pytest.mark.timeout(180)
def test_a_killed_consumer_is_seen_as_a_rebalance_with_its_cause(own_cluster: Cluster) -> None:
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
        window.wait_for(lambda seen: group in seen and "Stable" in seen, "the group in the list", 60)
        window.press("Enter")
        window.wait_for(lambda seen: lit(seen) == "Stable" and "3 members" in seen, "three members, Stable", 60)

        # One dies. Another is held up: so long the group waits for it, and everyone can see it wait.
        slow.send_signal(signal.SIGSTOP)
        victim.kill()
        seen = window.wait_for(lambda seen: lit(seen) == "PreparingRebalance", "PreparingRebalance lit", 30)
        assert "slow" in seen
        slow.send_signal(signal.SIGCONT)
        seen = window.wait_for(lambda seen: lit(seen) == "Stable" and "2 members" in seen, "Stable with two", 60)
        if tells_a_story(kgctl, group):
            seen = window.wait_for(lambda seen: "session timed out" in seen, "the cause on the timeline", 10)
            history = kgctl.rows("groups", "history", group)
            assert history[-1]["cause"] == "session timed out"
            assert f" {history[-1]['generation']}  session timed out" in seen
        else:
            window.wait_for(lambda seen: "-1" in seen and "seen" in seen, "a rebalance seen from outside", 10)
        window.press("q")
        window.wait_for(lambda seen: "exit=0" in seen, "its end", 20)


def tells_a_story(kgctl: Kgctl, group: str) -> bool:
    return kgctl("groups", "history", group).exit_code == 0


@pytest.mark.timeout(60)
def test_a_broker_that_goes_away_and_comes_back_is_told_and_found_again(own_cluster: Cluster) -> None:
    kgctl = Kgctl(own_cluster.bootstrap_servers)
    topic = fresh("orders")
    assert kgctl("topics", "create", topic).exit_code == 0
    kgctl.commit("billing", topic, p0=0)
    with terminal(dashboard(own_cluster)) as window:
        window.wait_for(lambda seen: "billing" in seen and "live" in seen, "the group")
        own_cluster.kill()
        seen = window.wait_for(lambda seen: "NO ANSWER" in seen, "that nobody answers")
        assert "billing" in seen
        own_cluster.restart()
        window.wait_for(lambda seen: "live" in seen and "NO ANSWER" not in seen and "billing" in seen, "it again")


def test_without_a_broker_there_is_one_clear_screen_and_it_goes_on_trying(tmp_path: Path) -> None:
    with terminal([*KGCTL, "ui", "--bootstrap", "127.0.0.1:1"]) as window:
        seen = window.wait_for(lambda seen: "Attempts: 2" in seen, "a second attempt")
        assert "No answer from 127.0.0.1:1" in seen
        assert "kgctl broker start" in seen
        assert "Traceback" not in seen
        window.press("q")
        window.wait_for(lambda seen: "exit=0" in seen, "its end", 20)


@pytest.mark.parametrize("how", ["q", "C-c", "SIGTERM"])
def test_the_terminal_is_as_before_after_the_end(our_cluster: Cluster, how: str) -> None:
    with terminal(dashboard(our_cluster)) as window:
        window.wait_for(lambda seen: "Groups" in seen and "live" in seen, "the dashboard")
        if how == "SIGTERM":
            window.terminate()
        else:
            window.press(how)
        seen = window.wait_for(lambda seen: "exit=" in seen, "its end", 20)
        assert "exit=0" in seen
        assert "Groups" not in seen


@pytest.mark.parametrize("no_color", ["", "1"])
def test_no_color_takes_every_colour_away(our_cluster: Cluster, no_color: str) -> None:
    with terminal(dashboard(our_cluster), environment={"NO_COLOR": "1"} if no_color else {}) as window:
        window.wait_for(lambda seen: "Groups" in seen and "live" in seen, "the dashboard")
        assert is_grey(window.screen_with_colours()) == bool(no_color)


# Of the palette of 256: the ramp of greys, and the greys of the cube.
GREYS = {*range(232, 256), 0, 7, 8, 15, 16, 59, 102, 145, 188, 231}


def is_grey(text: str) -> bool:
    """Every colour in it has as much red as green and blue, or nearly."""
    found = re.findall(r"[34]8;2;(\d+);(\d+);(\d+)|[34]8;5;(\d+)", text)
    assert found, "no colours of 24 bits, nor of the palette"
    return all(
        max(map(int, one[:3])) - min(map(int, one[:3])) <= 2 if one[0] else int(one[3]) in GREYS for one in found
    )


def test_a_window_may_be_resized(our_cluster: Cluster) -> None:
    with terminal(dashboard(our_cluster), 120, 40) as window:
        window.wait_for(lambda seen: "Groups" in seen and "live" in seen, "the dashboard")
        window.resize(80, 24)
        window.wait_for(lambda seen: "Quit" in seen.splitlines()[-1], "the keys in the last line")
        window.resize(40, 10)
        window.wait_for(lambda seen: len(seen.splitlines()) == 10 and "kgctl" in seen, "a small one")
