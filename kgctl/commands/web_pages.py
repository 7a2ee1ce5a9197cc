"""`kgctl ui --web`: what the server of the dashboard's pages gets from the command line."""

from __future__ import annotations

import contextlib
import html
import os
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from kgctl.render import note

if TYPE_CHECKING:
    from kgctl.commands.shared.settings import Settings

# Set in the processes of sessions, which get the same command line as the server.
_SESSION = "_KGCTL_UI_SESSION"
_OPENER = """<!DOCTYPE html><meta charset="utf-8"><meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={0}"><title>kgctl</title><a href="{0}">Open the dashboard</a>
"""


def is_session_of_a_server() -> bool:
    """Whether this process draws one page of a server; the processes that it starts do not."""
    return os.environ.pop(_SESSION, "") == "1"


def check_choices(
    host: str | None, *, once: bool, record: bool, rings: bool, read_only: bool, allow_actions: bool
) -> None:
    if once:
        raise typer.BadParameter("--once prints a frame; omit --web.", param_hint="'--web'")
    if rings:
        raise typer.BadParameter("A page does not ring; see --alert-command.", param_hint="'--bell'")
    if record:
        raise typer.BadParameter("Each page reads by itself; record without --web.", param_hint="'--record'")
    if read_only and allow_actions:
        raise typer.BadParameter("contradicts --read-only.", param_hint="'--allow-actions'")
    if host is None or host == "localhost":
        return
    from ipaddress import ip_address

    with contextlib.suppress(ValueError):
        if ip_address(host).is_loopback:
            return
    raise typer.BadParameter(
        f"{host!r} is not a loopback address; for another machine, use `ssh -L PORT:127.0.0.1:PORT` there.",
        param_hint="'--host'",
    )


def serve_pages(
    chosen: Settings, host: str | None, port: int, theme: str, *, open_browser: bool, read_only: bool
) -> None:
    from broker.local import broker_environment
    from kgctl.client.net.errors import KgctlError

    try:
        from kgctl.tui.web.server import Wanted, serve
    except ModuleNotFoundError as error:
        if error.name not in ("aiohttp", "textual_serve"):
            raise
        raise KgctlError("the dashboard in a browser needs pip install 'kgctl[web]'") from None

    command = [sys.executable, "-P", "-m", "kgctl", *chosen.command_line]
    environment = {**broker_environment(), _SESSION: "1"}
    address = "127.0.0.1" if host in (None, "localhost") else str(host)
    with contextlib.ExitStack() as stack:

        def announce(url: str) -> None:
            sys.stdout.write(f"{url}\n")
            sys.stdout.flush()
            note(
                "Pages are read-only; see --allow-actions."
                if read_only
                else "Pages can change what the context permits."
            )
            note("Anyone on this machine who has this address can open it. Ctrl-C ends the server and its sessions.")
            if open_browser:
                _open(stack.enter_context(_opener(url)))

        serve(Wanted(command, environment, address, port, theme), announce, note)


@contextlib.contextmanager
def _opener(url: str) -> Iterator[Path]:
    """A private file that leads to the page: arguments of a browser are visible to other users of the machine."""
    with tempfile.TemporaryDirectory(prefix="kgctl-") as folder:
        file = Path(folder, "dashboard.html")
        file.write_text(_OPENER.format(html.escape(url)), encoding="utf-8")
        yield file


def _open(file: Path) -> None:
    import webbrowser

    def run() -> None:
        if not webbrowser.open(file.as_uri()):
            note("Found no browser; open the address above.")

    # Some browsers do not return before they end.
    threading.Thread(target=run, daemon=True).start()
