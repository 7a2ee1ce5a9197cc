"""One frame of the dashboard without a terminal: as text, and as SVG."""

from __future__ import annotations

import asyncio
import io
import re
from dataclasses import dataclass

from rich.console import Console
from textual.pilot import Pilot

from kgctl.client.net.errors import KgctlError
from kgctl.model.failure import RowError
from kgctl.model.watched import GroupLook
from kgctl.tui.app import KgctlApp
from kgctl.tui.screens.watching import Watching

STEP_S = 0.02
CURSOR_MOVE = re.compile(r"\x1b\[\d+;\d+H")


@dataclass(frozen=True, slots=True)
class Frame:
    """`text` has a line per row of the terminal, with escape sequences for colours if they were asked for.

    `error` is that of the group on display, where that is what the frame shows.
    """

    text: str
    svg: str
    error: RowError | None = None


def frame(
    app: KgctlApp, size: tuple[int, int], *, keys: tuple[str, ...] = (), looks: int = 1, colours: bool
) -> Frame | None:
    """Run the app unseen on a terminal of (columns, lines), until its screen has looked so often, press keys, and draw it.

    None if a signal ended it before. Raises what the cluster answers if that is an error.
    """
    found: list[Frame | KgctlError] = []

    async def draw(pilot: Pilot[object]) -> None:
        error = await _looked(app, looks)
        if app.is_over:
            return
        if error is None and keys:
            await pilot.press(*keys)
        await pilot.pause()
        found.append(error or Frame(drawn(app, colours), app.export_screenshot(), _error_of_group(app)))
        app.exit()

    app.run(headless=True, size=size, auto_pilot=draw)
    app.check()
    result = found[0] if found else None
    if isinstance(result, KgctlError):
        raise result
    return result


async def _looked(app: KgctlApp, looks: int) -> KgctlError | None:
    while not app.is_over:
        screen = app.screen
        if isinstance(screen, Watching):
            if screen.polling.freshness.error is not None:
                return screen.polling.freshness.error
            if screen.polling.answers >= looks:
                return None
        await asyncio.sleep(STEP_S)
    return None


def _error_of_group(app: KgctlApp) -> RowError | None:
    answers = [screen.polling.last for screen in app.screen_stack if isinstance(screen, Watching)]
    return next((answer.group.error for answer in answers if isinstance(answer, GroupLook)), None)


def drawn(app: KgctlApp, colours: bool) -> str:
    """All lines of the screen as it is now."""
    width, height = app.size
    console = Console(
        width=width,
        height=height,
        file=io.StringIO(),
        force_terminal=True,
        color_system="truecolor",
        record=True,
        legacy_windows=False,
    )
    # What App.export_screenshot prints; it has no form for text.
    console.print(app.screen._compositor.render_update(full=True, screen_stack=app._background_screens))
    lines = CURSOR_MOVE.sub("", console.export_text(styles=colours)).splitlines()
    return "".join(f"{line if colours else line.rstrip()}\n" for line in lines)
