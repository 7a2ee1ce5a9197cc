"""Renders docs/pictures/dashboard-*.png: the dashboard of a small shop while consumers join, die and lag.

Run `python -m tools.dashboard_pictures`. It needs the demo extra (confluent-kafka), and chromium or google-chrome on PATH.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from broker.local import LocalBroker
from kgctl.client.admin.admin import Admin
from kgctl.client.admin.reset import Scope, Target
from kgctl.client.net.bootstrap import parse
from kgctl.client.net.connector import ConnectionSettings
from tests.harness.browser import chromium, tab

PICTURES = Path(__file__).parent.parent / "docs" / "pictures"
TOPICS = {"orders": 8, "payments": 4, "clicks": 6}
CONFIG = {"group.initial.rebalance.delay.ms": "500"}
# A character of the SVG is 12.2 by 24.4 units; the frame around the text adds a margin.
CELL, FRAME = (12.2, 24.4), (20, 62)


def main() -> int:
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        print("needs chromium or google-chrome", file=sys.stderr)
        return 1
    with contextlib.ExitStack() as stack:
        bootstrap = stack.enter_context(LocalBroker(config=CONFIG)).bootstrap_servers
        out = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        admin = stack.enter_context(Admin(ConnectionSettings(parse(bootstrap))))
        for topic, partitions in TOPICS.items():
            admin.create_topics([topic], partitions=partitions)
        stack.enter_context(_producing(bootstrap))
        for group, topic in (("audit", "payments"), ("search-index", "clicks")):
            admin.apply_reset(admin.plan_reset(group, Scope(((topic, None),)), Target("earliest")))
        workers = [
            stack.enter_context(
                _consumer(bootstrap, "checkout", f"worker-{number}", "orders", "payments", ms=session_ms)
            )
            for number, session_ms in ((1, 6_000), (2, 30_000), (3, 6_000))
        ]
        stack.enter_context(_consumer(bootstrap, "mail", "mailer-1", "payments"))
        stack.enter_context(_consumer(bootstrap, "fraud-check", "rules-1", "orders"))
        _wait_for(admin, "checkout", "Stable", 3)
        stack.enter_context(_consumer(bootstrap, "checkout", "worker-4", "orders", "payments"))
        _wait_for(admin, "checkout", "Stable", 4)
        time.sleep(5)

        # One consumer dies and another is stopped, so that the group waits for it.
        workers[1].send_signal(signal.SIGSTOP)
        workers[2].kill()
        _wait_for(admin, "checkout", "PreparingRebalance", 3)
        time.sleep(1.5)
        _draw(browser, bootstrap, out, "rebalance", (110, 34), "checkout")
        asyncio.run(_draw_page(bootstrap, out, "checkout"))
        _draw(browser, bootstrap, out, "groups", (120, 34), snapshots=60)
        workers[1].send_signal(signal.SIGCONT)
        _wait_for(admin, "checkout", "Stable", 3)
        _draw(browser, bootstrap, out, "assignment", (110, 24), "checkout", "--screen", "assignment")
    return 0


def _draw(
    browser: str, bootstrap: str, out: Path, name: str, size: tuple[int, int], *arguments: str, snapshots: int = 3
) -> None:
    svg = out / f"{name}.svg"
    command = [sys.executable, "-m", "kgctl", "ui", *arguments, "--once", "--bootstrap", bootstrap, "--svg", str(svg)]
    command += ["--size", f"{size[0]}x{size[1]}", "--snapshots", str(snapshots), "--interval", "0.3"]
    subprocess.run(command, check=True)
    width, height = (round(cells * cell + frame) for cells, cell, frame in zip(size, CELL, FRAME, strict=True))
    # Without a sandbox, which containers lack; the picture is our own.
    options = ["--headless", "--no-sandbox", "--hide-scrollbars", f"--window-size={width},{height}"]
    picture = PICTURES / f"dashboard-{name}.png"
    subprocess.run([browser, *options, f"--screenshot={picture}", svg.as_uri()], check=True, stderr=subprocess.DEVNULL)


async def _draw_page(bootstrap: str, out: Path, group: str) -> None:
    """The page of `kgctl ui --web` in the browser."""
    command = [sys.executable, "-m", "kgctl", "ui", group, "--web", "--bootstrap", bootstrap, "--interval", "0.3"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        address = server.stdout.readline().strip()
        with chromium(out / "browser", 1200, 860) as devtools:
            async with tab(devtools) as page:
                await page.open(address)
                await page.screen(lambda screen: "Preparing" in screen, "a rebalance")
                await asyncio.sleep(2)
                (PICTURES / "dashboard-web.png").write_bytes(await page.picture())
        server.terminate()


@contextlib.contextmanager
def _consumer(
    bootstrap: str, group: str, client_id: str, *topics: str, ms: int = 6_000
) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "kgctl.demo.consumer", "--bootstrap", bootstrap, "--group", group]
    command += ["--client-id", client_id, "--session-timeout-ms", str(ms)]
    command += [word for topic in topics for word in ("--topic", topic)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as running:
        try:
            yield running
        finally:
            running.kill()


@contextlib.contextmanager
def _producing(bootstrap: str) -> Iterator[None]:
    from confluent_kafka import Producer

    ended = threading.Event()

    def produce() -> None:
        producer = Producer({"bootstrap.servers": bootstrap})
        while not ended.wait(0.05):
            for topic, partitions in TOPICS.items():
                for number in range(partitions):
                    producer.produce(topic, b"an event", partition=number)
            producer.poll(0)
        producer.flush(5)

    thread = threading.Thread(target=produce)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _wait_for(admin: Admin, group: str, state: str, members: int, within_s: float = 60) -> None:
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        (found,) = admin.describe_groups([group], offsets=False)
        if (found.state, len(found.members)) == (state, members):
            return
        time.sleep(0.1)
    raise TimeoutError(f"{group} is {found.state} with {len(found.members)} members, not {state} with {members}")


if __name__ == "__main__":
    sys.exit(main())
