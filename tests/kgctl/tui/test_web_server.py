"""The server of the dashboard's pages: who may ask, how many sessions it has, and how they end."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from subprocess import PIPE

import aiohttp
import pytest

from kgctl.tui.web.guard import is_loopback_host, is_same_origin
from kgctl.tui.web.server import MOST_SESSIONS, CannotServe, Server, Wanted
from kgctl.tui.web.session import Session
from tests.harness import ROOT
from tests.harness.commandline import Kgctl

# A dashboard that draws its size, then each key that it gets, until its input ends.
ECHO = """
import os, sys
def draw(text): os.write(1, b"D" + len(text).to_bytes(4, "big") + text)
print("__GANGLION__", flush=True)
draw(f"{os.getpid()} {os.environ['COLUMNS']}x{os.environ['ROWS']}".encode())
while head := sys.stdin.buffer.read(5):
    draw(head[:1] + sys.stdin.buffer.read(int.from_bytes(head[1:], "big")))
"""
FAILING = "import sys; sys.exit('Error: the context has no address')"
STUBBORN = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
os.write(1, b"__GANGLION__\\nD\\0\\0\\0\\1x")
time.sleep(99)
"""


class Served:
    def __init__(self, client: aiohttp.ClientSession, address: str, reports: list[str]) -> None:
        self.client, self.address, self.reports = client, address, reports
        self.origin = address[: address.index("/", 7)]

    async def status(self, path: str = "", **headers: str) -> int:
        async with self.client.get(self.address + path, headers=headers) as answer:
            return answer.status

    async def opened(self, **headers: str) -> aiohttp.ClientWebSocketResponse:
        return await self.client.ws_connect(
            f"{self.address}ws?width=100&height=30", headers={"Origin": self.origin, **headers}
        )


@asynccontextmanager
async def served(program: str) -> AsyncIterator[Served]:
    reports: list[str] = []
    address = asyncio.get_running_loop().create_future()
    wanted = Wanted([sys.executable, "-c", program], dict(os.environ), "127.0.0.1", 0, "dark")
    running = asyncio.create_task(Server(wanted, reports.append).run(address.set_result))
    async with aiohttp.ClientSession() as client:
        yield Served(client, await address, reports)
        os.kill(os.getpid(), signal.SIGINT)
        await running


def run(test: Callable[[Served], Awaitable[None]], program: str = ECHO) -> None:
    async def inside() -> None:
        async with served(program) as server:
            await test(server)

    asyncio.run(inside())


async def drawn(page: aiohttp.ClientWebSocketResponse) -> bytes:
    return await page.receive_bytes(timeout=20)


async def until_gone(pid: int) -> None:
    while Path(f"/proc/{pid}").exists():
        await asyncio.sleep(0.02)


def test_only_who_knows_the_token_at_a_loopback_name_is_served() -> None:
    async def test(server: Served) -> None:
        port = server.origin.rpartition(":")[2]
        token = server.address.split("/")[3]
        assert len(token) >= 40
        for path in ("", "ping", "page.css", "page.js", "static/js/textual.js", "static/css/xterm.css"):
            assert await server.status(path) == 200
            assert await server.status(path, Host=f"localhost:{int(port) + 1}") == 200
            assert await server.status(path, Host=f"evil.example:{port}") == 403
            for wrong in ("", f"{token[:-1]}/", f"{token}x/", "x/", f"static/../{token[:-1]}/"):
                async with server.client.get(f"{server.origin}/{wrong}{path}") as answer:
                    assert answer.status == 403
                    assert token not in await answer.text()
        for path in ("static/", "static/../server.py", "static/%2e%2e/%2e%2e/app_service.py", "nothing"):
            assert await server.status(path) in (403, 404)

    run(test)


def test_every_answer_forbids_other_hosts_frames_and_referrers() -> None:
    async def test(server: Served) -> None:
        for url in (server.address, f"{server.address}static/js/textual.js", f"{server.origin}/wrong"):
            async with server.client.get(url) as answer:
                policy = answer.headers["Content-Security-Policy"]
                assert policy.startswith("default-src 'none'; script-src 'self';")
                assert "frame-ancestors 'none'" in policy
                assert answer.headers["Referrer-Policy"] == "no-referrer"
                assert answer.headers["Cache-Control"] == "no-store"

    run(test)


def test_a_page_of_another_site_cannot_open_a_session() -> None:
    async def test(server: Served) -> None:
        for origin in ("https://evil.example", "null", "http://localhost:1", server.origin.replace("http", "https")):
            with pytest.raises(aiohttp.WSServerHandshakeError) as caught:
                await server.opened(Origin=origin)
            assert caught.value.status == 403
        with pytest.raises(aiohttp.WSServerHandshakeError) as caught:
            await server.client.ws_connect(f"{server.address}ws")
        assert caught.value.status == 403
        with pytest.raises(aiohttp.WSServerHandshakeError):
            await server.client.ws_connect(f"{server.origin}/wrong/ws", headers={"Origin": server.origin})

    run(test)


@pytest.mark.parametrize(
    ("host", "is_ours"),
    [
        ("127.0.0.1:8000", True),
        ("localhost", True),
        ("[::1]:80", True),
        ("127.0.0.1.evil.example", False),
        ("localhost.evil.example:80", False),
        ("10.0.0.1:80", False),
        ("[::1", False),
        ("", False),
        (None, False),
    ],
)
def test_a_host_is_loopback_or_refused(host: str | None, is_ours: bool) -> None:
    assert is_loopback_host(host) == is_ours
    assert is_same_origin(f"http://{host}", host)
    assert not is_same_origin(None, host)


def test_a_session_gets_keys_sizes_and_focus_and_ends_with_its_page() -> None:
    async def test(server: Served) -> None:
        async with await server.opened() as page:
            pid, size = (await drawn(page)).split()
            assert size == b"100x30"
            await page.send_json(["stdin", "x\u20ac"])
            assert await drawn(page) == "Dx\u20ac".encode()
            await page.send_json(["resize", {"width": 10**9, "height": -3}])
            assert await drawn(page) == b'M{"type": "resize", "width": 500, "height": 1}'
            await page.send_json(["blur"])
            assert await drawn(page) == b'M{"type": "blur"}'
            await page.send_json(["ping", "7"])
            assert await page.receive_json(timeout=20) == ["pong", "7"]
        await asyncio.wait_for(until_gone(int(pid)), 20)
        assert server.reports == []

    run(test)


@pytest.mark.parametrize("message", ['"stdin"', '["stdin", 7]', '["resize", {"width": "1", "height": 2}]', "{", "[]"])
def test_a_page_that_sends_something_else_loses_its_session(message: str) -> None:
    async def test(server: Served) -> None:
        async with await server.opened() as page:
            pid = int((await drawn(page)).split()[0])
            await page.send_str(message)
            assert (await page.receive(timeout=20)).type is aiohttp.WSMsgType.CLOSE
            await asyncio.wait_for(until_gone(pid), 20)
        assert server.reports == []

    run(test)


def test_the_number_of_sessions_is_limited_and_the_page_says_so() -> None:
    async def test(server: Served) -> None:
        pages = [await server.opened() for _ in range(MOST_SESSIONS)]
        pids = [int((await drawn(page)).split()[0]) for page in pages]
        refused = await server.opened()
        closed = await refused.receive(timeout=20)
        assert (closed.data, closed.extra) == (1013, "8 pages are open already; close one.")
        await pages[0].close()
        await asyncio.wait_for(until_gone(pids[0]), 20)
        assert (await drawn(await server.opened())).split()[1] == b"100x30"

    run(test)


def test_a_dashboard_that_cannot_start_gives_the_page_its_reason() -> None:
    async def test(server: Served) -> None:
        async with await server.opened() as page:
            closed = await page.receive(timeout=20)
            assert (closed.data, closed.extra) == (1000, "Error: the context has no address")
        assert server.reports == ["A session has failed: Error: the context has no address"]

    run(test, FAILING)


def test_the_end_of_the_server_ends_its_sessions() -> None:
    async def inside() -> None:
        async with served(ECHO) as server:
            page = await server.opened()
            pid = int((await drawn(page)).split()[0])
            os.kill(os.getpid(), signal.SIGTERM)
            closed = await page.receive(timeout=20)
            assert (closed.data, closed.extra) == (1001, "The server has ended.")
            await asyncio.wait_for(until_gone(pid), 20)

    asyncio.run(inside())


def test_a_dashboard_that_does_not_end_is_killed() -> None:
    async def inside() -> None:
        session = Session([sys.executable, "-c", STUBBORN], os.environ, ending_s=0.1, terminating_s=0.1)

        async def show(content: bytes) -> None:
            session.end()

        await asyncio.wait_for(session.run((80, 24), show), 20)
        assert session.failure == "the dashboard ended with exit code -9"

    asyncio.run(inside())


@contextmanager
def program(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """`kgctl ui --web` for a broker that does not answer. It opens a browser that prints what it is given."""
    command = [sys.executable, "-m", "kgctl", "ui", "--web", "--bootstrap", "127.0.0.1:1", "--open", *arguments]
    environment = {**os.environ, "BROWSER": "echo %s"}
    with subprocess.Popen(command, stdout=PIPE, stderr=PIPE, text=True, cwd=ROOT, env=environment) as running:
        try:
            yield running
        finally:
            running.kill()


async def first_frames(client: aiohttp.ClientSession, address: str) -> bytes:
    page, frames = await Served(client, address, []).opened(), b""
    while b"No answer from" not in frames:
        frames += await drawn(page)
    return frames


@pytest.mark.timeout(60)
def test_sessions_end_with_a_killed_server_and_no_other_user_sees_the_token() -> None:
    async def inside() -> None:
        with program("--allow-actions") as running:
            assert running.stdout is not None
            assert running.stderr is not None
            address, opened = (running.stdout.readline().strip() for _ in range(2))
            token = address.split("/")[3]
            # The browser is given a private file, as all users of a machine may read the arguments of programs.
            assert token not in opened
            file = Path(opened.removeprefix("file://"))
            assert f'url={address}"' in file.read_text()
            assert file.parent.stat().st_mode & 0o777 == 0o700
            async with aiohttp.ClientSession() as client:
                assert b"READ-ONLY" not in await first_frames(client, address)
                (pid,) = map(int, Path(f"/proc/{running.pid}/task/{running.pid}/children").read_text().split())
                assert token.encode() not in Path(f"/proc/{pid}/cmdline").read_bytes()
                running.kill()
                await asyncio.wait_for(until_gone(pid), 20)
            shutil.rmtree(file.parent)
            assert token not in running.stderr.read()

    asyncio.run(inside())


@pytest.mark.timeout(60)
def test_a_session_ends_by_itself_when_its_page_is_closed() -> None:
    async def inside() -> None:
        command = [sys.executable, "-m", "kgctl", "ui", "--web", "--bootstrap", "127.0.0.1:1"]
        # The server would wait for longer than the test before it sends a signal.
        session = Session(command, {**os.environ, "_KGCTL_UI_SESSION": "1"}, ending_s=600)
        frames = bytearray()

        async def show(content: bytes) -> None:
            frames.extend(content)
            if b"No answer from" in frames:
                session.end()

        await asyncio.wait_for(session.run((100, 30), show), 30)
        assert session.failure is None

    asyncio.run(inside())


@pytest.mark.timeout(60)
def test_pages_are_read_only_unless_actions_are_allowed_and_the_server_leaves_nothing() -> None:
    async def inside() -> None:
        with program() as running:
            assert running.stdout is not None
            address, opened = (running.stdout.readline().strip() for _ in range(2))
            async with aiohttp.ClientSession() as client:
                assert b"READ-ONLY" in await first_frames(client, address)
            running.send_signal(signal.SIGHUP)
            assert running.wait(20) == 0
            assert not Path(opened.removeprefix("file://")).parent.exists()

    asyncio.run(inside())


def test_a_missing_extra_is_one_line() -> None:
    code = "import sys; sys.modules['aiohttp'] = None; from kgctl.__main__ import main; main()"
    command = [sys.executable, "-c", code, "ui", "--web", "--bootstrap", "127.0.0.1:1"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "Error: the dashboard in a browser needs pip install 'kgctl[web]'\n"


def test_a_taken_port_is_one_line() -> None:
    async def test(server: Served) -> None:
        port = int(server.origin.rpartition(":")[2])
        with pytest.raises(CannotServe, match=f"cannot listen on 127.0.0.1:{port}: Address already in use"):
            await Server(Wanted([], {}, "127.0.0.1", port, "dark"), print).run(print)

    run(test)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--port", "80"], "'--port': needs --web."),
        (["--allow-actions"], "'--allow-actions': needs --web."),
        (["--web", "--host", "0.0.0.0"], "'0.0.0.0' is not a loopback address; for another machine, use `ssh -L"),
        (["--web", "--host", "example.com"], "'example.com' is not a loopback address"),
        (["--web", "--once"], "omit --web."),
        (["--web", "--record", "x"], "record without --web."),
        (["--web", "--bell"], "A page does not ring"),
        (["--web", "--read-only", "--allow-actions"], "contradicts --read-only."),
    ],
)
def test_wrong_usage_is_reported_before_serving(arguments: list[str], text: str) -> None:
    result = Kgctl("127.0.0.1:1")("ui", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert text in " ".join(result.stderr.split())
