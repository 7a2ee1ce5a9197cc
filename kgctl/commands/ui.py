"""`kgctl ui`: the dashboard."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kgctl.commands.groups.unused_after import DAY, UnusedAfter, unused_after_s
from kgctl.commands.shared.effects import reads, shows
from kgctl.commands.shared.help import examples
from kgctl.commands.shared.outcome import conclude
from kgctl.commands.shared.settings import settings
from kgctl.commands.web_pages import check_choices, is_session_of_a_server, serve_pages
from kgctl.render.show import wants_color
from kgctl.watch.limits import Limits

if TYPE_CHECKING:
    from kgctl.commands.shared.settings import Settings
    from kgctl.tui.app import KgctlApp
    from kgctl.tui.feed.protocol import Feed

# The values of --screen, with the keys that open each screen from the first one, or from that of the group.
GROUPS_SCREENS = {
    "groups": (),
    "topics": ("g", "t"),
    "events": ("g", "e"),
    "brokers": ("g", "b"),
    "transactions": ("g", "x"),
    "contexts": ("g", "c"),
    "help": ("question_mark",),
}
GROUP_SCREENS: Mapping[str, tuple[str, ...]] = {
    "overview": (),
    "members": ("1",),
    "partitions": ("2",),
    "rebalances": ("3",),
    "assignment": ("4",),
    "lag": ("5",),
}
THEMES = ("dark", "light", "contrast")
SMALLEST, LARGEST = (40, 10), (500, 500)
EPILOG = examples(
    "kgctl ui",
    "kgctl ui orders --read-only",
    "kgctl ui orders --once --screen partitions --snapshots 5",
    "kgctl ui orders --once --svg orders.svg",
    "kgctl ui --record incident.kgctl",
    "kgctl ui --replay incident.kgctl --at 12:31:07",
    "kgctl ui --web --open",
)


@shows("ui-groups", "ui-partitions")
@reads
def ui(
    ctx: typer.Context,
    group: Annotated[
        str | None, typer.Argument(metavar="[GROUP]", show_default=False, help="Open this group first.")
    ] = None,
    read_only: Annotated[bool, typer.Option("--read-only", help="Disable everything that changes a group.")] = False,
    interval: Annotated[
        float, typer.Option("--interval", metavar="SECONDS", min=0.1, max=3600, help="Refresh interval.")
    ] = 2.0,
    theme: Annotated[str, typer.Option("--theme", metavar="|".join(THEMES), help="Colour theme.")] = THEMES[0],
    ascii_only: Annotated[
        bool | None,
        typer.Option(
            "--ascii/--unicode",
            show_default=False,
            help="Draw with ASCII characters, or with all. Default: as the locale and TERM say.",
        ),
    ] = None,
    bell: Annotated[
        bool, typer.Option("--bell", help="Ring the terminal's bell when the verdict of a group becomes a fault.")
    ] = False,
    alert_command: Annotated[
        str | None,
        typer.Option(
            "--alert-command",
            metavar="COMMAND",
            help="Run this when the verdict of a group changes, without a shell; see KGCTL_GROUP, KGCTL_VERDICT, "
            "KGCTL_WAS and KGCTL_REASON in its environment.",
        ),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Print one frame and exit; needs no terminal.")] = False,
    screen: Annotated[
        str | None,
        typer.Option(
            "--screen",
            metavar="SCREEN",
            help=f"With --once: screen to print: {', '.join(GROUPS_SCREENS)}; of a GROUP: {', '.join(GROUP_SCREENS)}.",
        ),
    ] = None,
    size: Annotated[str, typer.Option("--size", metavar="WxH", help="With --once: size of the frame.")] = "120x40",
    snapshots: Annotated[
        int,
        typer.Option("--snapshots", metavar="N", min=1, help="With --once: snapshots to take first; rates need 3 s."),
    ] = 1,
    svg: Annotated[
        Path | None,
        typer.Option("--svg", metavar="FILE", help="With --once: write the frame to this SVG file instead."),
    ] = None,
    record: Annotated[
        Path | None,
        typer.Option("--record", metavar="FILE", help="Record all that the dashboard reads into this new file."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="With --record: replace the file if it exists.")] = False,
    replay: Annotated[
        Path | None,
        typer.Option("--replay", metavar="FILE", help="Show a recording instead of a cluster."),
    ] = None,
    unused_after: UnusedAfter = DAY,
    at: Annotated[
        str | None,
        typer.Option("--at", metavar="TIME", help="With --replay: begin at 12:31:07, at +90s, or at an ISO 8601 time."),
    ] = None,
    web: Annotated[bool, typer.Option("--web", help="Show the dashboard in browsers on this machine.")] = False,
    port: Annotated[
        int | None,
        typer.Option(
            "--port", metavar="N", min=0, max=65535, help="With --web: port; 0, the default, is any free one."
        ),
    ] = None,
    host: Annotated[
        str | None,
        typer.Option(
            "--host", metavar="ADDRESS", help="With --web: loopback address to listen on. [default: 127.0.0.1]"
        ),
    ] = None,
    open_browser: Annotated[bool, typer.Option("--open", help="With --web: open the page in your browser.")] = False,
    allow_actions: Annotated[
        bool, typer.Option("--allow-actions", help="With --web: let pages change groups; they are read-only otherwise.")
    ] = False,
) -> None:
    """Watch consumer groups on a live dashboard.

    Shows states, rebalances with their causes, members, assignments and lag. From there you can reset offsets, trigger
    rebalances and remove members; each action shows its plan and asks first. Press ? for the keys.
    """
    keys = _keys(group, screen)
    columns_and_lines = _size(size)
    if theme not in THEMES:
        raise typer.BadParameter(f"{theme!r} is not one of {', '.join(THEMES)}.", param_hint="'--theme'")
    chosen = settings(ctx)
    if chosen.output != "table" and not once:
        raise typer.BadParameter("the dashboard is no table; --once has its data.", param_hint="'--output'")
    if not once:
        _check_once(("--screen", screen), ("--svg", svg))

    for option, value, needed, is_given in (
        ("--force", force, "--record", record),
        ("--at", at, "--replay", replay),
        ("--port", port is not None, "--web", web or None),
        ("--host", host is not None, "--web", web or None),
        ("--open", open_browser, "--web", web or None),
        ("--allow-actions", allow_actions, "--web", web or None),
    ):
        if value and is_given is None:
            raise typer.BadParameter(f"needs {needed}.", param_hint=f"'{option}'")
    alert_words = _alert_words(alert_command)
    for option, alerts in (("--bell", bell), ("--alert-command", alert_command)):
        if alerts and (once or replay is not None):
            raise typer.BadParameter("needs the live dashboard.", param_hint=f"'{option}'")
    if record is not None and replay is not None:
        raise typer.BadParameter("--replay shows a recording; omit --record.", param_hint="'--record'")

    limits = Limits(unused_s=unused_after_s(unused_after))
    if web:
        check_choices(
            host, once=once, record=record is not None, rings=bell, read_only=read_only, allow_actions=allow_actions
        )
        read_only = not allow_actions
        if not is_session_of_a_server():
            # What would fail in every session fails here, once.
            if replay is not None:
                _replaying(replay, at, group, theme, limits).feed.close()
            else:
                chosen.connection()
            serve_pages(chosen, host, port or 0, theme, open_browser=open_browser, read_only=read_only)
            return
    elif not once:
        _check_terminal(ctx)
    if replay is not None:
        app = _replaying(replay, at, group, theme, limits)
    else:
        app = _watching(chosen, interval, group, theme, read_only, (record, force), limits)
    app.ascii_only = _is_ascii(ascii_only, has_own_font=web or svg is not None)
    app.rings, app.alert_command = bell, alert_words
    if read_only:
        app.read_only_reason = _why_read_only(web=web)
    try:
        if once:
            # A moment of a recording is one answer.
            answers = snapshots if replay is None else 1
            _print_frame(app, columns_and_lines, keys, answers, svg, chosen)
        else:
            app.run()
            app.check()
    finally:
        app.feed.close()
    if record is not None:
        _check_recording(app.feed, record)


def _alert_words(command: str | None) -> Sequence[str] | None:
    if command is None:
        return None

    from kgctl.tui.alerts.command import BadCommand, split

    try:
        return split(command)
    except BadCommand as error:
        raise typer.BadParameter(f"{error}.", param_hint="'--alert-command'") from None


def _why_read_only(*, web: bool) -> str:
    from kgctl.tui.hindrance import OPTION, PAGES

    return PAGES if web else OPTION


def _is_ascii(wanted: bool | None, *, has_own_font: bool) -> bool:
    from kgctl.tui.widgets.frame.terminal import is_ascii_only

    return not has_own_font and is_ascii_only(os.environ) if wanted is None else wanted


def _watching(
    chosen: Settings,
    interval: float,
    group: str | None,
    theme: str,
    read_only: bool,
    record: tuple[Path | None, bool],
    limits: Limits,
) -> KgctlApp:
    from kgctl.tui.app import KgctlApp
    from kgctl.tui.feed.connecting import connecting

    timeout = chosen.timeout if chosen.is_timeout_given else None
    connect = connecting(chosen.target(), chosen.connection(), timeout=timeout, read_only=read_only)
    feed = connect(None)
    path, force = record
    if path is None:
        return KgctlApp(feed, interval_s=interval, group=group, theme=theme, connect=connect, limits=limits)

    from kgctl.tui.feed.recording import record_to

    recording = record_to(path, feed, force=force)
    app = KgctlApp(recording, interval_s=interval, group=group, theme=theme, limits=limits)
    recording.failed = lambda reason: app.warn_from_thread(f"Recording has stopped: {path}: {reason}")
    return app


def _replaying(path: Path, at: str | None, group: str | None, theme: str, limits: Limits) -> KgctlApp:
    from kgctl.tui.feed.replay import Recording, ReplayFeed
    from kgctl.tui.replay.app import ReplayApp
    from kgctl.tui.replay.moments import place_at

    feed = ReplayFeed(Recording(path))
    if at is not None:
        feed.place = place_at(feed.recording, at)
    return ReplayApp(feed, group=group, theme=theme, limits=limits)


def _check_recording(feed: Feed, path: Path) -> None:
    from kgctl.client.net.errors import KgctlError
    from kgctl.tui.feed.recording import RecordingFeed

    if isinstance(feed, RecordingFeed) and feed.failure is not None:
        raise KgctlError(f"{path} is incomplete: {feed.failure}")


def _print_frame(
    app: KgctlApp, size: tuple[int, int], keys: tuple[str, ...], snapshots: int, svg: Path | None, chosen: Settings
) -> None:
    from kgctl.tui.once import frame

    drawn = frame(app, size, keys=keys, snapshots=snapshots, colors=wants_color(chosen.color))
    if drawn is None:
        raise typer.Exit(app.return_code or 1)
    if svg is None and chosen.output != "table":
        errors = app.cluster.snapshot.errors if app.cluster is not None else ()
        chosen.show(drawn.rows, kind="ui-partitions" if app.first_group else "ui-groups", errors=errors)
    elif svg is None:
        sys.stdout.write(drawn.text)
    else:
        try:
            svg.write_text(drawn.svg, encoding="utf-8")
        except OSError as error:
            raise typer.BadParameter(f"Cannot write {svg}: {error.strerror}.", param_hint="'--svg'") from None
    conclude([drawn.error], 1)


def _keys(group: str | None, screen: str | None) -> tuple[str, ...]:
    if group == "":
        raise typer.BadParameter("an empty name.", param_hint="'[GROUP]'")
    if screen is None:
        return ()
    if screen in GROUP_SCREENS:
        if group is None:
            raise typer.BadParameter(f"{screen!r} needs a GROUP.", param_hint="'--screen'")
        return GROUP_SCREENS[screen]
    if screen not in GROUPS_SCREENS:
        known = ", ".join([*GROUPS_SCREENS, *GROUP_SCREENS])
        raise typer.BadParameter(f"{screen!r} is not one of {known}.", param_hint="'--screen'")
    if screen == "groups" and group is not None:
        raise typer.BadParameter("'groups' shows all groups; omit GROUP.", param_hint="'--screen'")
    return GROUPS_SCREENS[screen]


def _size(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"(\d{1,4})x(\d{1,4})", text, re.ASCII)
    size = (int(found[1]), int(found[2])) if found else (0, 0)
    if not (SMALLEST[0] <= size[0] <= LARGEST[0] and SMALLEST[1] <= size[1] <= LARGEST[1]):
        least, most = "x".join(map(str, SMALLEST)), "x".join(map(str, LARGEST))
        raise typer.BadParameter(
            f"{text!r} is not a size such as 120x40, from {least} to {most}.", param_hint="'--size'"
        )
    return size


def _check_once(*given: tuple[str, object]) -> None:
    for option, value in given:
        if value is not None:
            raise typer.BadParameter("needs --once.", param_hint=f"'{option}'")


def _check_terminal(ctx: typer.Context) -> None:
    if not (sys.stdin.isatty() and sys.stdout.isatty()) or os.environ.get("TERM") == "dumb":
        ctx.fail("The dashboard needs a terminal; --once prints one frame without one.")
