"""The server of `kgctl ui --web`: the page, its files, and a websocket per session."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import signal
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

import textual_serve
from aiohttp import WSCloseCode, WSMsgType, web

from broker.light_dataclasses import dataclass
from kgctl.client.net.errors import KgctlError
from kgctl.tui.web.guard import HEADERS, has_token, is_loopback_host, is_same_origin
from kgctl.tui.web.page import SCRIPT, STYLE, page
from kgctl.tui.web.session import Session

# Each session is a process that polls the cluster by itself.
MOST_SESSIONS = 8
HEARTBEAT_S = 15.0
# How long to wait for the page to agree to the end.
GOODBYE_S = 1.0
LARGEST_MESSAGE = 1 << 20
LONGEST_REASON = 120
FONT_SIZE = 16
STATICS = Path(textual_serve.__path__[0], "static")
NO_TOKEN = "403: the address lacks the token of this server. Open the address that `kgctl ui --web` has printed.\n"
WRONG_HOST = "403: this server answers only to 127.0.0.1, ::1 and localhost.\n"
WRONG_ORIGIN = "403: only the page of this server may open a session.\n"
TOO_MANY = f"{MOST_SESSIONS} pages are open already; close one."


class CannotServe(KgctlError):
    name = "CANNOT_SERVE"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to serve: the command of a session and its environment; where; and the theme, for the page around it."""

    command: Sequence[str]
    environment: Mapping[str, str]
    host: str
    port: int
    theme: str


class Server:
    def __init__(self, wanted: Wanted, report: Callable[[str], None]) -> None:
        self._wanted, self._report = wanted, report
        self._token = secrets.token_urlsafe(32)
        self._sessions: dict[Session, asyncio.Task[None]] = {}
        self._ended = asyncio.Event()

    async def run(self, announce: Callable[[str], object]) -> None:
        """Serve until SIGINT, SIGTERM or SIGHUP; `announce` gets the address with the token. Raises CannotServe."""
        listening = _listening(self._wanted.host, self._wanted.port)
        quiet = logging.getLogger("kgctl.tui.web")
        quiet.addHandler(logging.NullHandler())
        quiet.propagate = False
        # No log names a path, as each has the token.
        runner = web.AppRunner(self._app(), access_log=None, logger=quiet, shutdown_timeout=1.0)
        await runner.setup()
        try:
            await web.SockSite(runner, listening).start()
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                asyncio.get_running_loop().add_signal_handler(number, self._ended.set)
            announce(f"http://{_authority(listening)}/{self._token}/")
            await self._ended.wait()
        finally:
            for session in self._sessions:
                session.end()
            await runner.cleanup()

    def _app(self) -> web.Application:
        app = web.Application(middlewares=[self._guard], client_max_size=1024)
        root = f"/{self._token}"
        app.add_routes(
            [
                web.get(root, self._index),
                web.get(f"{root}/", self._index),
                web.get(f"{root}/ping", _text("ok", "text/plain")),
                web.get(f"{root}/page.css", _text(STYLE, "text/css")),
                web.get(f"{root}/page.js", _text(SCRIPT, "text/javascript")),
                web.get(f"{root}/ws", self._websocket),
                web.static(f"{root}/static", STATICS),
            ]
        )
        app.on_response_prepare.append(_add_headers)
        app.on_shutdown.append(self._wait_for_sessions)
        return app

    @web.middleware
    async def _guard(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        if not is_loopback_host(request.headers.get("Host")):
            return web.Response(status=403, text=WRONG_HOST)
        if not has_token(request.path, self._token):
            return web.Response(status=403, text=NO_TOKEN)
        return await handler(request)

    async def _index(self, request: web.Request) -> web.Response:
        if not request.path.endswith("/"):
            raise web.HTTPSeeOther(f"{request.path}/")
        websocket = f"ws://{request.headers['Host']}/{self._token}/ws"
        return web.Response(text=page("kgctl", websocket, self._wanted.theme, FONT_SIZE), content_type="text/html")

    async def _websocket(self, request: web.Request) -> web.StreamResponse:
        if not is_same_origin(request.headers.get("Origin"), request.headers.get("Host")):
            return web.Response(status=403, text=WRONG_ORIGIN)
        page_socket = web.WebSocketResponse(
            heartbeat=HEARTBEAT_S, timeout=GOODBYE_S, max_msg_size=LARGEST_MESSAGE, compress=False
        )
        await page_socket.prepare(request)
        if len(self._sessions) >= MOST_SESSIONS:
            await _close(page_socket, WSCloseCode.TRY_AGAIN_LATER, TOO_MANY)
            return page_socket
        session = Session(self._wanted.command, self._wanted.environment)
        self._sessions[session] = asyncio.create_task(self._serve(session, page_socket, request))
        try:
            await self._sessions[session]
        finally:
            del self._sessions[session]
        return page_socket

    async def _serve(self, session: Session, page_socket: web.WebSocketResponse, request: web.Request) -> None:
        size = (_number(request.query.get("width"), 80), _number(request.query.get("height"), 24))
        running = asyncio.create_task(session.run(size, page_socket.send_bytes))
        reading = asyncio.create_task(_pass_on(page_socket, session))
        try:
            await asyncio.wait([running, reading], return_when=asyncio.FIRST_COMPLETED)
        finally:
            session.end()
            reading.cancel()
            await asyncio.gather(running, reading, return_exceptions=True)
        error = str(running.exception()) if running.exception() else session.failure
        if error is not None:
            self._report(f"A session has failed: {error}")
        if self._ended.is_set():
            await _close(page_socket, WSCloseCode.GOING_AWAY, "The server has ended.")
        else:
            await _close(page_socket, WSCloseCode.OK, error or "")

    async def _wait_for_sessions(self, app: web.Application) -> None:
        await asyncio.gather(*self._sessions.values(), return_exceptions=True)


async def _pass_on(page_socket: web.WebSocketResponse, session: Session) -> None:
    """Pass what the page sends to the session, until one of both ends or the page sends what textual-serve's does not."""
    async for message in page_socket:
        if message.type is not WSMsgType.TEXT:
            return
        try:
            said = message.json()
        except ValueError:
            return
        match said:
            case ["stdin", str(text)]:
                await session.type(text)
            case ["resize", {"width": int(columns), "height": int(lines)}]:
                await session.resize(columns, lines)
            case ["ping", sent]:
                await page_socket.send_json(["pong", sent])
            case ["focus" | "blur" as kind]:
                await session.focus(kind == "focus")
            case _:
                return


async def _close(page_socket: web.WebSocketResponse, code: int, reason: str) -> None:
    with contextlib.suppress(ConnectionError):
        await page_socket.close(code=code, message=reason.encode()[:LONGEST_REASON])


async def _add_headers(request: web.Request, response: web.StreamResponse) -> None:
    response.headers.update(HEADERS)


def _text(text: str, content_type: str) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(text=text, content_type=content_type)

    return answer


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise CannotServe(f"cannot listen on {host}:{port}: {error.strerror}") from None


def _authority(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _number(text: str | None, default: int) -> int:
    return int(text) if text is not None and text.isascii() and text.isdigit() and len(text) < 6 else default


def serve(wanted: Wanted, announce: Callable[[str], object], report: Callable[[str], None]) -> None:
    """Serve the dashboard until a signal ends it."""

    async def run() -> None:
        await Server(wanted, report).run(announce)

    asyncio.run(run())
