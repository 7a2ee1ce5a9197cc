"""The app: its screens, the refresh interval, and the actions that work on every screen."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import time
from collections.abc import Callable, Sequence
from typing import ClassVar

from textual import events
from textual.app import App
from textual.binding import Binding, BindingType
from textual.filter import LineFilter
from textual.screen import Screen
from textual.widgets import Input
from textual.worker import Worker

from kgctl.client.net.errors import KgctlError
from kgctl.tui.alerts.alerts import Alerts
from kgctl.tui.background import Background
from kgctl.tui.dashboard import Dashboard
from kgctl.tui.dialogs.plan import PlanDialog
from kgctl.tui.dialogs.undo import UndoDialog
from kgctl.tui.feed.connecting import Connect
from kgctl.tui.feed.protocol import Feed
from kgctl.tui.feed.records import Records, newest
from kgctl.tui.feed.topic_names import TopicNames
from kgctl.tui.finder import sources
from kgctl.tui.finder.ranking import Found, Source
from kgctl.tui.finder.screen import Finder
from kgctl.tui.garbage import Garbage
from kgctl.tui.hindrance import OPTION, hindrance
from kgctl.tui.keys import Key
from kgctl.tui.observer import LiveObserver, Observer
from kgctl.tui.places import PLACES, PREFIX, Place, place_of
from kgctl.tui.screens.changes import ChangesGroups
from kgctl.tui.screens.group import GroupScreen
from kgctl.tui.screens.groups import GroupsScreen
from kgctl.tui.screens.help import HelpScreen
from kgctl.tui.screens.polled import ClusterScreen, PolledScreen
from kgctl.tui.screens.records import RecordsScreen
from kgctl.tui.screens.topics import TopicsScreen
from kgctl.tui.switching import Switch
from kgctl.tui.themes import DARK, THEMES
from kgctl.tui.widgets.frame.glyphs import AsciiOnly
from kgctl.tui.widgets.frame.key_line import KeyLine
from kgctl.tui.widgets.frame.zoom import Zoom
from kgctl.tui.widgets.groups.columns import urgency
from kgctl.watch.baseline import Baseline
from kgctl.watch.cluster import ClusterView
from kgctl.watch.limits import LIMITS, Limits

INTERVALS_S = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0)
DEFAULT_INTERVAL_S = 2.0
# All groups are read no more often than this while a screen is open that does not show them.
COVERED_INTERVAL_S = 5.0
ASCII_ONLY = AsciiOnly()


class KgctlApp(App[None]):
    """`interval_s` is the refresh interval; `clock` gives monotonic seconds, from which ages are computed.

    `group` opens that group at the start; `read_only` disables every action that changes a group. Set `ascii_only` before it runs
    to draw with ASCII characters, `rings` and `alert_command` for alerts. `connect` makes the feeds of other clusters; without it,
    the app stays with this one.
    """

    TITLE = "kgctl"
    ENABLE_COMMAND_PALETTE = False
    CSS = (
        """
    Screen { background: $surface; color: $foreground; }
    """
        + Zoom.CSS
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("colon", "find", "Find", key_display=":", tooltip="Find groups, topics, screens and actions"),
        Binding("question_mark", "help", "Help", key_display="?"),
        Binding("q", "quit", "Quit"),
        Binding("ctrl+c", "quit", "Quit", show=False, priority=True),
        Binding("plus,equals_sign", "slower", "Refresh less often", show=False, key_display="+"),
        Binding("minus", "faster", "Refresh more often", show=False, key_display="-"),
        Binding("p", "pause", "Pause", show=False),
        Binding("U", "undo", "Undo a change", show=False),
        Binding("ctrl+r", "refresh_now", "Refresh now", show=False),
        Binding("B", "baseline", "Compare with this moment from now on, or no longer", show=False),
        Binding("A", "toggle_bell", "Ring the bell when a group needs you, or not", show=False),
        Binding("t", "next_theme", "Next theme", show=False),
        Binding("g", "await_place", "Go to a screen, by its letter", show=False, key_display="gg"),
    ]

    def __init__(
        self,
        feed: Feed,
        *,
        interval_s: float = DEFAULT_INTERVAL_S,
        read_only: bool = False,
        group: str | None = None,
        theme: str = DARK.name,
        clock: Callable[[], float] = time.monotonic,
        observer: Observer | None = None,
        connect: Connect | None = None,
        limits: Limits = LIMITS,
    ) -> None:
        super().__init__()
        self.feed, self.home = feed, feed.cluster
        self._switch, self._limits = Switch(self, self._show_cluster, connect), limits
        self.interval_s = interval_s
        self.read_only_reason = OPTION if read_only else ""
        self.read_only = read_only or feed.cluster.read_only
        self.is_paused = False
        self.ready = asyncio.Event()
        self._clock = clock
        self._awaits_place = False
        self.ascii_only = False
        self.rings = False
        self.alert_command: Sequence[str] | None = None
        self._alerts: Alerts | None = None
        self.baseline: Baseline | None = None
        self.first_group = group
        self.background = self._background_of(observer or LiveObserver(feed, limits))
        self._garbage = Garbage(clock())
        self._failure: Exception | None = None
        self._watching: Worker[None] | None = None
        for one in THEMES:
            self.register_theme(one)
        self.theme = theme

    def get_default_screen(self) -> Screen[None]:
        return GroupsScreen()

    def on_mount(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            # Only the main thread can handle signals; tests run the app in others.
            with contextlib.suppress(ValueError, RuntimeError):
                asyncio.get_running_loop().add_signal_handler(number, self._end, 128 + number)
        if self.first_group is not None:
            self.open_group(self.first_group)
        if self.replay is None:
            self._alerts = Alerts(self.bell, self._warn, rings=self.rings, command=self.alert_command)
            if self._alerts.command is not None:
                self.run_worker(self._alerts.command.run(), exit_on_error=True)
        self._watching = self.run_worker(self.background.polling.run, exit_on_error=True)

    def _background_of(self, observer: Observer) -> Background:
        return Background(observer, self._cluster_answered, self._cluster_failed, self._background_s, self.now_s)

    # ---- the cluster

    @property
    def has_switched(self) -> bool:
        return self._switch.has_switched

    def switch_to(self, context: str | None) -> None:
        self._switch.to(context)

    def _show_cluster(self, feed: Feed) -> None:
        """Show another cluster, from its screen of all groups. Nothing of the old one is left."""
        if self._watching is not None:
            self._watching.cancel()
        self.feed.close()
        self.feed, self.read_only = feed, bool(self.read_only_reason) or feed.cluster.read_only
        self.background = self._background_of(LiveObserver(feed, self._limits))
        self.background.polling.is_paused = self.is_paused
        if self._alerts is not None:
            self._alerts.forget()
        self.baseline = None
        for _ in self.screen_stack[1:]:
            self.pop_screen()
        # Textual gives the first screen no callback for its result, and cannot switch a screen without one.
        if not self.screen._result_callbacks:
            self.screen._push_result_callback(self.screen, None)
        self.switch_screen(GroupsScreen())
        self._watching = self.run_worker(self.background.polling.run, exit_on_error=True)

    @property
    def is_over(self) -> bool:
        """Whether the app is ending: on request, after a fault, or by a signal."""
        return self._failure is not None or self.return_code is not None

    def _end(self, return_code: int) -> None:
        self.exit(return_code=return_code)

    def check(self) -> None:
        """Raise the exception that ended the app, if one did. Call it after `run`."""
        if self._failure is not None:
            raise self._failure

    def warn_from_thread(self, text: str) -> None:
        """Show a warning; called in another thread."""
        with contextlib.suppress(RuntimeError):
            self.call_from_thread(self.notify, text, severity="error", timeout=60)

    def fail(self, error: Exception) -> None:
        self._failure = self._failure or error
        self.exit()

    def _handle_exception(self, error: Exception) -> None:
        self._failure = self._failure or error
        super()._handle_exception(error)

    def _fatal_error(self) -> None:
        # The command prints the error in one line; Textual would print a traceback of a page.
        self._close_messages_no_wait()

    def get_line_filters(self) -> Sequence[LineFilter]:
        return [*super().get_line_filters(), *([ASCII_ONLY] if self.ascii_only else [])]

    def on_key(self, event: events.Key) -> None:
        if self._awaits_place:
            self._awaits_place = False
            self._prompt("")
            if (place := place_of(event.character)) is not None:
                event.prevent_default()
                self.go_to(place)
            return
        if not self.screen_stack:
            # The app is ending.
            return
        # A key that was typed in one go with the key that opened an input was sent to the widget that had the focus then.
        # Send it to the input: "/box" must neither rebalance a group nor remove a member.
        if isinstance(self.screen, PlanDialog) and self.screen.early_keys.take(event):
            event.prevent_default()
        elif isinstance(self.focused, Input) and event.is_printable:
            event.prevent_default()
            # Not through the app, where a key that moves the focus may be waiting already.
            self.focused.post_message(events.Key(event.key, event.character))
        elif isinstance(self.screen, ChangesGroups) and (reason := self.screen.refusal(event.key)):
            event.prevent_default()
            self.notify(reason, severity="warning", markup=False)

    @property
    def replay(self) -> str | None:
        return None

    @property
    def replay_details(self) -> str:
        return ""

    def go_to(self, place: Place) -> None:
        """Leave the screens that are open, and open this one."""
        for _ in self.screen_stack[1:]:
            self.pop_screen()
        if place.make is not None:
            self.push_screen(place.make())

    def open_topic(self, topic: str) -> None:
        self.push_screen(TopicsScreen(topic))

    def open_records(self, topic: str, partition: int, group: str | None = None) -> None:
        self.push_screen(
            RecordsScreen(newest(topic, partition) if group is None else Records(topic, partition, group=group))
        )

    def _prompt(self, text: str) -> None:
        for line in self.screen.query(KeyLine):
            line.prompt(text)

    def open_group(self, group: str, at_ms: int | None = None) -> None:
        self.push_screen(GroupScreen(group, at_ms))

    @property
    def cluster(self) -> ClusterView | None:
        return self.background.view

    def _warn(self, sentence: str) -> None:
        self.notify(sentence, severity="error", markup=False)

    async def on_event(self, event: events.Event) -> None:
        if isinstance(event, events.InputEvent):
            self._garbage.used(self.now_s())
        await super().on_event(event)

    def on_unmount(self) -> None:
        self._garbage.restore()

    def groups_in_order(self) -> list[str]:
        for screen in self.screen_stack:
            if isinstance(screen, GroupsScreen) and screen.rows.rows:
                return [row.group for row in screen.rows.rows]
        return [row.group for row in sorted(self.cluster.rows, key=urgency, reverse=True)] if self.cluster else []

    def _cluster_answered(self, view: ClusterView) -> None:
        self._garbage.answered(len(view.rows), self.now_s())
        if self._alerts is not None:
            self._alerts.add(view)
        if isinstance(self.screen, PolledScreen):
            self.screen.hear(view)

    def _cluster_failed(self, error: KgctlError) -> None:
        if isinstance(self.screen, PolledScreen):
            self.screen.cluster_failed(error)

    def _background_s(self) -> float:
        is_shown = isinstance(self.screen, ClusterScreen)
        return self.interval_s if is_shown else max(self.interval_s, COVERED_INTERVAL_S)

    def now_s(self) -> float:
        return self._clock()

    def set_ready(self) -> None:
        self.ready.set()

    # ---- actions on every screen

    def action_await_place(self) -> None:
        self._awaits_place = True
        self._prompt("   ".join(f"{PREFIX}{place.letter} {place.name}" for place in PLACES))

    def action_baseline(self) -> None:
        self.baseline = Baseline(self.cluster) if self.baseline is None and self.cluster is not None else None
        for screen in self._polled()[-1:]:
            screen.show_again()

    def action_toggle_bell(self) -> None:
        if self._alerts is not None:
            self._alerts.rings = not self._alerts.rings
            what = "The bell rings when a group begins to need you." if self._alerts.rings else "The bell is off."
            self.notify(what, markup=False)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "toggle_bell" and self._alerts is None:
            return False
        return super().check_action(action, parameters)

    def action_find(self) -> None:
        found = [
            sources.screens(self.go_to),
            sources.actions(self.screen, self._run),
            sources.groups(self.cluster, self.open_group),
        ]
        finder = Finder([*found, sources.topics(self.cluster, (), self.open_topic)])
        self.push_screen(finder, self._open)
        finder.run_worker(self._find_topics(finder, found))

    async def _find_topics(self, finder: Finder, others: Sequence[Source]) -> None:
        """Add the topics that no group reads."""
        # Without an answer the finder has the topics that groups read.
        with contextlib.suppress(KgctlError):
            names = (await self.feed.read(TopicNames())).names
            finder.search([*others, sources.topics(self.cluster, names, self.open_topic)])

    def _open(self, found: Found | None) -> None:
        if found is not None:
            found.source.choose(found.place)

    def _run(self, key: Key) -> None:
        self.call_later(self.run_action, key.action, key.node)

    def action_help(self) -> None:
        if not isinstance(self.screen, HelpScreen):
            self.push_screen(HelpScreen(self.screen))

    async def action_quit(self) -> None:
        if not any(isinstance(screen, PlanDialog) and screen.blocks_quit() for screen in self.screen_stack):
            self.exit()

    def action_slower(self) -> None:
        self.interval_s = next((one for one in INTERVALS_S if one > self.interval_s), INTERVALS_S[-1])
        self._tick()

    def action_faster(self) -> None:
        self.interval_s = next((one for one in reversed(INTERVALS_S) if one < self.interval_s), INTERVALS_S[0])
        self._tick()

    def action_pause(self) -> None:
        self.is_paused = not self.is_paused
        self.background.polling.is_paused = self.is_paused
        for screen in self._polled():
            screen.polling.is_paused = self.is_paused
        self._tick()

    def action_refresh_now(self) -> None:
        for screen in self._polled()[-1:]:
            screen.polling.now()

    def action_undo(self) -> None:
        if reason := hindrance(self):
            self.notify(reason, severity="warning", markup=False)
        elif not isinstance(self.screen, PlanDialog):
            self.push_screen(UndoDialog(self.feed))

    def action_next_theme(self) -> None:
        names = [theme.name for theme in THEMES]
        self.theme = names[(names.index(self.theme) + 1) % len(names)] if self.theme in names else names[0]

    def _polled(self) -> list[PolledScreen[object]]:
        return [screen for screen in self.screen_stack if isinstance(screen, PolledScreen) and screen.is_open]

    def _tick(self) -> None:
        for screen in self._polled():
            screen.show_header()


_dashboard: type[Dashboard] = KgctlApp  # checked by mypy
