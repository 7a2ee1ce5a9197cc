"""The dashboard of a recording: the same screens, and the keys that move through it."""

from __future__ import annotations

import time
from typing import Any, ClassVar

from textual.binding import Binding, BindingType
from textual.widgets import Input
from textual.worker import Worker

from kgctl.tui.app import KgctlApp
from kgctl.tui.feed.replay import ReplayFeed
from kgctl.tui.replay.observer import ReplayObserver
from kgctl.tui.replay.player import Player
from kgctl.watch.limits import LIMITS, Limits

# The recording is asked again after each move, and never by itself.
NEVER_S = 1e9


class ReplayApp(KgctlApp):
    """Everything that changes something is disabled."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space,p", "replay('play')", "Play or stop", show=False, priority=True, key_display="space"),
        Binding("full_stop", "replay('step', 1)", "One frame forward", show=False, priority=True, key_display="."),
        Binding("comma", "replay('step', -1)", "One frame back", show=False, priority=True, key_display=","),
        Binding("greater_than_sign", "replay('step', 10)", "10 frames on", show=False, priority=True, key_display=">"),
        Binding("less_than_sign", "replay('step', -10)", "10 frames back", show=False, priority=True, key_display="<"),
        Binding("n", "replay('to_event', 1)", "Next event", show=False, priority=True),
        Binding("N", "replay('to_event', -1)", "Previous event", show=False, priority=True),
        Binding("left_curly_bracket", "replay('to_first')", "Start", show=False, priority=True, key_display="{"),
        Binding("right_curly_bracket", "replay('to_last')", "End", show=False, priority=True, key_display="}"),
        Binding("plus,equals_sign", "replay('change_speed', 1)", "Faster", show=False, priority=True, key_display="+"),
        Binding("minus", "replay('change_speed', -1)", "Slower", show=False, priority=True, key_display="-"),
    ]

    def __init__(self, feed: ReplayFeed, *, limits: Limits = LIMITS, **options: Any) -> None:
        observer = ReplayObserver(feed, limits)
        super().__init__(feed, interval_s=NEVER_S, read_only=True, clock=feed.now_s, observer=observer, **options)
        self._replayed, self._observer = feed, observer
        self.player = Player(feed, observer, self._moved)
        self._workers_of_replay: list[Worker[None]] = []

    def on_mount(self) -> None:
        self._workers_of_replay = [
            self.run_worker(self.player.run, exit_on_error=True),
            self.run_worker(self._observer.look_ahead, exit_on_error=True),
        ]

    @property
    def replay(self) -> str:
        moment = time.strftime("%H:%M:%S", time.localtime(self._replayed.frame.wall_ms / 1000))
        return f"REPLAY {moment}  {self.player.place + 1:,}/{len(self._replayed.recording.frames):,}"

    @property
    def replay_details(self) -> str:
        return self.player.text

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "replay" and (isinstance(self.focused, Input) or self._polled()[-1:] != [self.screen]):
            return False
        return super().check_action(action, parameters)

    def action_replay(self, what: str, *values: int) -> None:
        getattr(self.player, what)(*values)

    def _moved(self) -> None:
        self.background.polling.now()
        for screen in self._polled()[-1:]:
            screen.polling.now()
            screen.tick()
