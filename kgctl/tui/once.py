"""Renders one frame of the dashboard without a terminal, as text and as SVG."""

from __future__ import annotations

import asyncio
import io
import re

from rich.console import Console
from textual.pilot import Pilot

from broker.light_dataclasses import dataclass
from kgctl.client.net.errors import KgctlError
from kgctl.model.cluster_view import FrameGroup, FramePartition
from kgctl.model.failure import RowError
from kgctl.tui.app import KgctlApp
from kgctl.tui.frame_rows import rows_of
from kgctl.tui.screens.polled import PolledScreen
from kgctl.watch.opened import OpenedGroup

STEP_S = 0.02
CURSOR_MOVE = re.compile(r"\x1b\[\d+;\d+H")


@dataclass(frozen=True, slots=True)
class Frame:
    """`text` has one line per row of the terminal, with escape sequences if colors were requested.

    `error` is the error that the frame shows for its group, if any. `rows` are its data: all groups, or the partitions of the
    group that was opened.
    """

    text: str
    svg: str
    error: RowError | None = None
    rows: tuple[FrameGroup | FramePartition, ...] = ()


def frame(
    app: KgctlApp, size: tuple[int, int], *, keys: tuple[str, ...] = (), snapshots: int = 1, colors: bool
) -> Frame | None:
    """Run the app headless at a size of (columns, lines) until it has taken `snapshots`, press the keys, and render it.

    None if a signal ended the app first. Raises the KgctlError if the cluster answers with one.
    """
    found: list[Frame | KgctlError] = []

    async def draw(pilot: Pilot[object]) -> None:
        error = await _polled(app, snapshots)
        if app.is_over:
            return
        if error is None and keys:
            await _focused(app)
            await pilot.press(*keys)
            # A screen that the keys have opened has answers of its own.
            error = await _polled(app, snapshots) if isinstance(app.screen, PolledScreen) else None
        await _laid_out(app, pilot)
        found.append(error or Frame(rendered(app, colors), app.export_screenshot(), _error_of_group(app), rows_of(app)))
        app.exit()

    app.run(headless=True, size=size, auto_pilot=draw)
    app.check()
    result = found[0] if found else None
    if isinstance(result, KgctlError):
        raise result
    return result


async def _focused(app: KgctlApp) -> None:
    """Wait for the focus, which follows the first answer: the help lists the keys of the focused widget."""
    while not app.is_over and app.screen.focused is None:
        await asyncio.sleep(STEP_S)


async def _laid_out(app: KgctlApp, pilot: Pilot[object]) -> None:
    """Wait for the widgets of a screen that a key has opened: they are mounted after the screen is on top."""
    await pilot.pause()
    while not app.is_over and not any(widget.size for widget in app.screen.children if widget.display):
        await asyncio.sleep(STEP_S)


async def _polled(app: KgctlApp, snapshots: int) -> KgctlError | None:
    while not app.is_over:
        screen = app.screen
        if isinstance(screen, PolledScreen):
            if screen.polling.freshness.error is not None:
                return screen.polling.freshness.error
            if screen.polling.answers >= snapshots:
                return None
        await asyncio.sleep(STEP_S)
    return None


def _error_of_group(app: KgctlApp) -> RowError | None:
    answers = [screen.polling.last for screen in app.screen_stack if isinstance(screen, PolledScreen)]
    opened = (answer.snapshot for answer in answers if isinstance(answer, OpenedGroup))
    return next((snapshot.group.error for snapshot in opened if snapshot is not None), None)


def rendered(app: KgctlApp, colors: bool) -> str:
    """All lines of the current screen."""
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
    # This is what App.export_screenshot prints; it offers no text format.
    console.print(app.screen._compositor.render_update(full=True, screen_stack=app._background_screens))
    lines = CURSOR_MOVE.sub("", console.export_text(styles=colors)).splitlines()
    return "".join(f"{line if colors else line.rstrip()}\n" for line in lines)
