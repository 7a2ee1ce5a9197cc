"""What a run shows of its progress: for people on stderr, with `--json` as lines on stdout."""

from __future__ import annotations

from kgctl.pipelines.progress import Progress
from kgctl.pipelines.timings import timing_line
from kgctl.render import note
from kgctl.render.progress import ProgressLine


class ShownProgress:
    """Shows the timings when the run ends; those of a run that follows at once, because it has no end and many of them.

    A run that follows does its batch jobs again and again; one that wrote no rows is shown only in JSON.
    """

    def __init__(self, *, json_lines: bool, timings: bool, follow: bool) -> None:
        self._json, self._timings, self._follow = json_lines, timings, follow
        self._line = ProgressLine(json_lines)
        self._phases: list[Progress] = []

    def show(self, event: Progress) -> None:
        if event.kind == "timing":
            self._show_timing(event)
        elif self._json or not (self._follow and event.kind == "done" and event.rows == 0):
            self._line.show(event)

    def close(self) -> None:
        """Erase the line that is being rewritten."""
        self._line.close()

    def end(self) -> None:
        self._line.close()
        for event in self._phases:
            note(timing_line(event))
        self._phases.clear()

    def _show_timing(self, event: Progress) -> None:
        if not self._timings:
            return
        if self._json:
            self._line.show(event)
        elif self._follow:
            self._line.close()
            note(timing_line(event))
        else:
            self._phases.append(event)
