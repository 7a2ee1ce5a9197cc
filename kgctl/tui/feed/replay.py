"""A recording as a feed: it answers what the cluster had answered at the moment that is shown."""

from __future__ import annotations

import json
import math
import time
from bisect import bisect_right
from collections.abc import Callable
from pathlib import Path
from typing import Any, Generic, TypeVar

from broker.light_dataclasses import dataclass
from kgctl.client.admin.admin import Admin
from kgctl.client.net.errors import BadValue, KgctlError, Precondition, from_row
from kgctl.model.failure import RowError
from kgctl.tui.cluster_label import ClusterLabel
from kgctl.tui.feed.delta import patched, read_again
from kgctl.tui.feed.read import NotRecorded, Read, answer_type, parts
from kgctl.tui.feed.recording_file import read_lines, unpacked
from kgctl.tui.feed.values import NotAValue, from_json

T = TypeVar("T")
LATEST_MS = 253_402_300_800_000  # the year 10000
NO_CHANGES = "This is a recording: nothing can be changed."


@dataclass(frozen=True, slots=True)
class RecordedFrame:
    """One answer: when it arrived, to which question, and its packed line. `hints` has fields of the read that are no part of the question."""

    at_s: float
    wall_ms: int
    question: str
    is_whole: bool
    failure: RowError | None
    hints: dict[str, Any]
    packed: bytes

    @property
    def line(self) -> dict[str, Any]:
        return unpacked(self.packed)

    @property
    def error(self) -> KgctlError | None:
        return None if self.failure is None else from_row(self.failure)

    def hint(self, name: str) -> Any:
        """The value of a hint; None if it had its default."""
        return self.hints.get(name)


class Recording:
    """All frames of a file, in order. `damage` says why there are no more if the file does not end as it should."""

    def __init__(self, path: Path) -> None:
        self.frames: list[RecordedFrame] = []
        self.places: dict[str, list[int]] = {}  # of the frames, by question
        try:
            lines = read_lines(path, self._add)
            self.damage = lines.damage
            self.cluster = from_json(ClusterLabel, lines.header["cluster"])
        except (KeyError, TypeError, ValueError) as error:
            raise BadValue(f"{path} is not a valid recording: {error}") from None
        if not self.frames:
            raise BadValue(f"{path} has no frames" + (f": {self.damage}" if self.damage else ""))

    def _add(self, line: dict[str, Any], packed: bytes) -> None:
        question = str(line["read"])
        frame = _checked(line, question, packed, is_new=question not in self.places)
        self.places.setdefault(question, []).append(len(self.frames))
        self.frames.append(frame)

    def groups_of(self, kind: str) -> dict[str, str]:
        """The questions of a class of reads about one group, by group."""
        found = {}
        for question in self.places:
            name, asked = json.loads(question)
            if name == kind and "group" in asked:
                found[str(asked["group"])] = question
        return found

    def at(self, wall_ms: int) -> int:
        """The place of the last frame that arrived until this time; 0 before the first."""
        return max(0, bisect_right(self.frames, wall_ms, key=lambda frame: frame.wall_ms) - 1)


def _checked(line: dict[str, Any], question: str, packed: bytes, *, is_new: bool) -> RecordedFrame:
    """The frame of a line. Raises ValueError for what no kgctl has written: recordings come from other people, too."""
    at_s, wall_ms = float(line["at_s"]), int(line["wall_ms"])
    if not (math.isfinite(at_s) and 0 <= wall_ms < LATEST_MS):
        raise ValueError("a frame has no valid time")
    kinds = line.keys() & {"answer", "change", "error"}
    if len(kinds) != 1 or (is_new and "change" in kinds):
        raise ValueError("a frame has no answer")
    failure = from_json(RowError, line["error"]) if "error" in kinds else None
    if is_new:
        name, asked = json.loads(question)
        if not (isinstance(name, str) and isinstance(asked, dict)):
            raise ValueError("a frame names no read")
    return RecordedFrame(at_s, wall_ms, question, "answer" in kinds, failure, line.get("with", {}), packed)


class Answers(Generic[T]):
    """The answers to one question. Going forward costs what has changed; going back starts at an answer that is whole."""

    def __init__(self, recording: Recording, kind: type[T], question: str) -> None:
        self._recording, self._kind = recording, kind
        self._places = recording.places.get(question, [])
        self._at = -1  # of self._places
        self._json: Any = None
        self._value: T | None = None

    def last(self, place: int) -> T | None:
        """The newest answer up to this place of the recording; None if there is none. Raises NotAValue for damage."""
        wanted = bisect_right(self._places, place) - 1
        frames = self._recording.frames
        begin = self._at + 1
        if wanted < self._at:
            begin = wanted
            while begin > 0 and not frames[self._places[begin]].is_whole:
                begin -= 1
            self._at, self._json, self._value = -1, None, None
        if wanted == self._at:
            return self._value
        found = self._json
        for number in range(begin, wanted + 1):
            line = frames[self._places[number]].line
            if "answer" in line:
                found = line["answer"]
            elif "change" in line:
                found = patched(found, line["change"])
        if found is not None:
            self._value = read_again(self._kind, found, self._json, self._value)
        self._at, self._json = wanted, found
        return self._value


class ReplayFeed:
    """Answers from a recording, at `place`: the number of a frame. Nothing can be changed through it."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.place = 0
        label = recording.cluster
        self.cluster = ClusterLabel(label.address, label.context, label.color, read_only=True)
        self._answers: dict[str, Answers[Any]] = {}

    @property
    def frame(self) -> RecordedFrame:
        return self.recording.frames[self.place]

    def now_s(self) -> float:
        return self.frame.at_s

    async def read(self, read: Read[T]) -> T:
        question, _ = parts(read)
        answers: Answers[T] | None = self._answers.get(question)
        if answers is None:
            answers = self._answers[question] = Answers(self.recording, answer_type(type(read)), question)
        try:
            found = answers.last(self.place)
        except NotAValue as error:
            raise NotRecorded(f"The recording has no valid answer to this: {error}.") from None
        if found is None:
            raise self._unknown(question)
        return found

    def _unknown(self, question: str) -> NotRecorded:
        places = self.recording.places.get(question)
        if not places or self.recording.frames[places[0]].failure is not None:
            return NotRecorded(
                "The recording does not have this: it was not on the screen while the dashboard recorded."
            )
        first = time.strftime("%H:%M:%S", time.localtime(self.recording.frames[places[0]].wall_ms / 1000))
        return NotRecorded(f"The recording has this from {first} on.")

    async def ask(self, question: Callable[[Admin], T]) -> T:
        raise Precondition(NO_CHANGES)

    def close(self) -> None:
        pass
