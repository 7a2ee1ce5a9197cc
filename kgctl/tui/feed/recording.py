"""Records every read of another feed into a file."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from kgctl.client.admin.admin import Admin
from kgctl.client.net.errors import BadValue, KgctlError
from kgctl.tui.cluster_label import ClusterLabel
from kgctl.tui.feed.delta import diff, written
from kgctl.tui.feed.protocol import Feed
from kgctl.tui.feed.read import Read, parts
from kgctl.tui.feed.recording_file import RecordingWriter
from kgctl.tui.feed.values import to_json

T = TypeVar("T")
# After this many changes an answer is written as a whole, so that a jump in a replay applies few of them.
CHANGES = 150
# More answers than this wait only if the disk does not keep up; then the dashboard waits for it.
WAITING = 100


def record_to(path: Path, feed: Feed, *, force: bool = False) -> RecordingFeed:
    """Record this feed into a new file; with `force`, also into one that exists. Raises BadValue."""
    label = ClusterLabel(feed.cluster.address, feed.cluster.context, feed.cluster.color)
    header = {"started_ms": int(time.time() * 1000), "cluster": to_json(label)}
    try:
        writer = RecordingWriter(path, header, force=force)
    except FileExistsError:
        raise BadValue(f"cannot record to {path}: it exists; choose another name or pass --force") from None
    except OSError as error:
        raise BadValue(f"cannot record to {path}: {error.strerror or error}") from None
    return RecordingFeed(feed, writer)


class RecordingFeed:
    """The feed, with each answer and each error written to the file in the order in which they arrive.

    A thread writes: the answers of 10,000 groups take a second. If writing fails, `failure` says why, `failed` is called once
    in that thread, and the dashboard continues without recording.
    """

    def __init__(
        self,
        feed: Feed,
        writer: RecordingWriter,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._feed, self._writer, self._clock = feed, writer, clock
        self.failed: Callable[[str], None] = lambda _: None
        self.failure: str | None = None
        self._frames: queue.Queue[Frame | None] = queue.Queue(WAITING)
        self._thread = threading.Thread(target=self._run, name="kgctl ui recording", daemon=True)
        self._thread.start()

    @property
    def cluster(self) -> ClusterLabel:
        return self._feed.cluster

    async def read(self, read: Read[T]) -> T:
        try:
            answer = await self._feed.read(read)
        except KgctlError as error:
            self._put(Frame(read, None, error, self._clock()))
            raise
        self._put(Frame(read, answer, None, self._clock()))
        return answer

    async def ask(self, question: Callable[[Admin], T]) -> T:
        return await self._feed.ask(question)

    def close(self) -> None:
        """Write what is left, and close the file and the other feed."""
        self._feed.close()
        self._frames.put(None)
        self._thread.join()

    def _put(self, frame: Frame) -> None:
        if self.failure is None:
            self._frames.put(frame)

    def _run(self) -> None:
        encoder = Encoder()
        while (frame := self._frames.get()) is not None:
            if self.failure is None:
                self._try(lambda frame=frame: self._writer.write(encoder.line(frame)))  # type: ignore[misc]
        self._try(self._writer.close)

    def _try(self, write: Callable[[], None]) -> None:
        try:
            write()
        except Exception as error:  # noqa: BLE001 - reported as the failure; without this thread `_put` would wait for ever
            reason = error.strerror if isinstance(error, OSError) else None
            is_first, self.failure = self.failure is None, reason or str(error) or type(error).__name__
            if is_first:
                self.failed(self.failure)


class Frame:
    """An answer or an error, with the time when it arrived."""

    __slots__ = ("answer", "at_s", "error", "read", "wall_ms")

    def __init__(self, read: Read[Any], answer: Any, error: KgctlError | None, at_s: float) -> None:
        self.read, self.answer, self.error, self.at_s = read, answer, error, at_s
        # Where the answer has a time of its own, steps and events agree.
        self.wall_ms: int = getattr(answer, "wall_ms", None) or int(time.time() * 1000)


class Encoder:
    """Makes lines of frames: an answer as a whole, or what changed since the last answer to the same read."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Any, Any, int]] = {}  # by question: the last answer, its JSON value, changes since

    def line(self, frame: Frame) -> dict[str, Any]:
        question, hints = parts(frame.read)
        line: dict[str, Any] = {"at_s": round(frame.at_s, 6), "wall_ms": frame.wall_ms, "read": question}
        if hints:
            line["with"] = hints
        if frame.error is not None:
            row = frame.error.as_row()
            return line | {"error": to_json(row)}
        known = self._known.get(question)
        if known is None:
            value = to_json(frame.answer)
            self._known[question] = frame.answer, value, 0
            return line | {"answer": value}
        before, was, changes = known
        value = written(frame.answer, before, was)
        is_whole = changes >= CHANGES
        self._known[question] = frame.answer, value, 0 if is_whole else changes + 1
        return line | ({"answer": value} if is_whole else {"change": diff(was, value)})
