"""`kgctl ui --web` in a real browser: a rebalance of real consumers on the page, and a page without the token."""

from __future__ import annotations

import asyncio
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.harness import ROOT
from tests.harness.browser import chromium, tab
from tests.harness.clusters import Cluster, fresh
from tests.harness.commandline import Kgctl, fill
from tests.kgctl.tui.test_in_a_terminal import consumer, state_on

NOTICE = "document.body.classList.contains('-lost') && document.querySelector('#notice').innerText.includes('{}')"


@contextmanager
def server(cluster: Cluster, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The server of the pages, and the address that it prints."""
    command = [sys.executable, "-m", "kgctl", "ui", "--web", "--bootstrap", cluster.bootstrap_servers, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as running:
        assert running.stdout is not None
        try:
            yield running, running.stdout.readline().strip()
        finally:
            running.kill()


def sessions_of(running: subprocess.Popen[str]) -> list[int]:
    return [int(pid) for pid in Path(f"/proc/{running.pid}/task/{running.pid}/children").read_text().split()]


def members(screen: str) -> int:
    found = re.search(r"Members (\d+)|(\d+) members", screen)
    return int(found[1] or found[2]) if found else 0


async def no_session(running: subprocess.Popen[str]) -> bool:
    return not sessions_of(running)


@pytest.mark.cluster
@pytest.mark.timeout(180)
def test_a_rebalance_shows_on_the_page_and_nothing_comes_from_elsewhere(our_cluster: Cluster, tmp_path: Path) -> None:
    kgctl, group, topic = Kgctl(our_cluster.bootstrap_servers), fresh("orders-app"), fresh("orders")
    assert kgctl("topics", "create", topic, "--partitions", 6).exit_code == 0
    fill(kgctl, topic, [5] * 6)
    with ExitStack() as stack:
        victim, slow, _ = [
            stack.enter_context(consumer(our_cluster, group, topic, name, session_ms))
            for name, session_ms in (("victim", 6000), ("slow", 30_000), ("quick", 6000))
        ]
        devtools = stack.enter_context(chromium(tmp_path))
        running, address = stack.enter_context(server(our_cluster, group, "--interval", "0.2"))

        async def watch() -> None:
            async with tab(devtools) as page:
                assert await page.open(address) == 200
                found = await page.screen(
                    lambda screen: state_on(screen) == "Stable" and members(screen) == 3, "three members", 60
                )
                assert "READ-ONLY" in found
                await page.press("U")
                await page.screen(lambda screen: "--allow-actions" in screen, "why nothing is undone")
                await page.press("?")
                await page.screen(lambda screen: "Esc to close" in screen, "the help")
                await page.press("Escape")
                # One consumer dies and another is stopped, so that the group stays in PreparingRebalance for a while.
                slow.send_signal(signal.SIGSTOP)
                victim.kill()
                await page.screen(lambda screen: state_on(screen).startswith("Preparing"), "the rebalance", 30)
                slow.send_signal(signal.SIGCONT)
                await page.screen(
                    lambda screen: state_on(screen) == "Stable" and members(screen) == 2, "Stable with two", 60
                )
                await page.screen(lambda screen: " timed out" in screen, "the cause on the timeline")
                base = address.removeprefix("http://")
                assert len(page.asked) > 5
                assert [url for url in page.asked if url.partition("://")[2].startswith(base)] == page.asked
                assert len(sessions_of(running)) == 1
                await page.press("q")
                await page.eventually(lambda: page.value(NOTICE.format("has ended")), "the notice of the end")
                await page.press("Enter")
                await page.screen(lambda screen: state_on(screen) == "Stable", "the dashboard, opened again")
            async with tab(devtools) as page:
                for wrong in (address.rsplit("/", 2)[0], f"{address[:-2]}/"):
                    assert await page.open(wrong) == 403
                await page.eventually(lambda: no_session(running), "the end of the session of the closed page")

                assert await page.open(address) == 200
                await page.screen(lambda screen: state_on(screen) == "Stable", "the dashboard on another page")
                running.kill()
                await page.eventually(lambda: page.value(NOTICE.format("connection is lost")), "the notice of the loss")
                port = address.split(":")[2].split("/")[0]
                restarted, _ = stack.enter_context(server(our_cluster, "--port", port))
                await page.eventually(
                    lambda: page.value(NOTICE.format("has been restarted")), "the notice of the restart"
                )
                restarted.send_signal(signal.SIGINT)
                assert restarted.wait(20) == 0

        asyncio.run(watch())
