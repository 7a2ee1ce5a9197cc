"""What a replay keeps beside the archive: its settings, and which offsets its records got.

DIR/_replays/<id>/replay.json    topics, and what the first run has resolved, such as the time of `now-1h`
DIR/_replays/<id>/offsets.log    a line per transaction: a checksum, and JSON. It is synced before the transaction is
                                 committed; the committed positions on the cluster say whether the last line counts
DIR/_replays/<id>/lock           held while the replay runs
"""

from __future__ import annotations

import contextlib
import json
import os
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from broker.atomic_file import replace_file
from kgctl.client.net.errors import KgctlError, Precondition
from kgctl.model.topic_partition import TopicPartition
from kgctl.pipelines.replay.offset_map import OffsetMap, Stretch
from kgctl.pipelines.tables.durable import hold
from kgctl.pipelines.tables.errors import Damaged

FOLDER, SETTINGS, OFFSETS, LOCK = "_replays", "replay.json", "offsets.log", "lock"
# 2: by key, lines also say where the records of the replay end in the target.
FORMAT = 2
_FINISHED = b"finished\n"
Positions = Mapping[TopicPartition, int]


class PositionsLost(Precondition):
    """The cluster no longer knows how far the replay was."""


@dataclass(frozen=True, slots=True)
class Committed:
    """One transaction: how far it moved each part (see `ReplaySettings.part_of`), and which offsets its records got.

    `ends`, of a replay by key: the offset after its last record in each partition of the target. None: not known.
    """

    moves: Mapping[TopicPartition, tuple[int, int]]
    stretches: Mapping[TopicPartition, Sequence[Stretch]] = field(default_factory=dict)
    ends: Mapping[TopicPartition, int] | None = None

    def without(self, parts: Collection[TopicPartition]) -> Committed:
        """Also without the ends in their topics."""
        moves = {part: move for part, move in self.moves.items() if part not in parts}
        stretches_ = {part: some for part, some in self.stretches.items() if part not in parts}
        topics = {part.topic for part in parts}
        ends = None if self.ends is None else {key: end for key, end in self.ends.items() if key.topic not in topics}
        return Committed(moves, stretches_, ends)

    def to_line(self) -> bytes:
        content: Any = [
            [*partition, start, end, [list(one) for one in self.stretches.get(partition, ())]]
            for partition, (start, end) in sorted(self.moves.items())
        ]
        if self.ends is not None:
            content = {"moves": content, "ends": [[*partition, end] for partition, end in sorted(self.ends.items())]}
        text = json.dumps(content, separators=(",", ":")).encode()
        return b"%08x %s\n" % (zlib.crc32(text), text)

    @classmethod
    def from_line(cls, line: bytes) -> Committed:
        """Raises ValueError."""
        checksum, _, text = line.rstrip(b"\n").partition(b" ")
        if not line.endswith(b"\n") or int(checksum, 16) != zlib.crc32(text):
            raise ValueError("the checksum does not match")
        content = json.loads(text)
        ends = None
        if isinstance(content, dict):
            ends = {TopicPartition(topic, number): end for topic, number, end in content["ends"]}
            content = content["moves"]
        moves = {TopicPartition(topic, number): (start, end) for topic, number, start, end, _ in content}
        parts = {
            TopicPartition(topic, number): tuple(Stretch(*one) for one in some) for topic, number, _, _, some in content
        }
        return cls(moves, parts, ends)


class ReplayLog:
    """The lines of a replay that count, and those to come. Made by `writing`, then without stretches, and `read_log`."""

    def __init__(self, folder: Path, file: IO[bytes], *, has_stretches: bool = True) -> None:
        """Reads the lines up to the first one that a crash has torn. Raises Damaged."""
        self.folder, self._file, self._has_stretches = folder, file, has_stretches
        self.lines: list[Committed] = []
        self.is_finished = False
        # Where the last of `lines` starts in the file, and where the next one will.
        self._last_start = self._end = 0
        torn: ValueError | TypeError | KeyError | None = None
        for number, text in enumerate(file, 1):
            # Only the last line may be torn: its transaction is not committed yet.
            if torn is not None:
                raise Damaged(f"{folder / OFFSETS}: line {number - 1} is damaged ({torn})") from torn
            if text == _FINISHED:
                self.is_finished = True
            else:
                try:
                    self._keep(Committed.from_line(text))
                except (ValueError, TypeError, KeyError) as error:
                    torn = error
                    continue
                self.is_finished, self._last_start = False, self._end
            self._end += len(text)

    def _keep(self, line: Committed) -> None:
        # A log that is written needs no stretches; with many gaps, those of a long replay take much memory.
        self.lines.append(line if self._has_stretches else Committed(line.moves, ends=line.ends))

    def _texts(self) -> Iterator[bytes]:
        """The lines of the file that count."""
        self._file.seek(0)
        left = self._end
        for text in self._file:
            left -= len(text)
            if left < 0:
                break
            if text != _FINISHED:
                yield text

    def settle(self, positions: Positions, parts: Collection[TopicPartition]) -> None:
        """Drop the last line if its transaction was not committed: `positions` is where each part continues on the cluster.

        Raises PositionsLost if one of `parts` is behind what was certainly committed.
        """
        sure = self.lines if self.is_finished else self.lines[:-1]
        if any(positions.get(part, -1) < end for part, end in _ends(sure).items() if part in parts):
            raise PositionsLost(
                f"the cluster has lost how far replay {self.folder.name} was: its group was deleted or has expired, or a "
                "topic was created again. --restart begins again, which writes records again that are still there"
            )
        last = self.lines[-1].moves if self.lines else {}
        if any(positions[part] < end if part in positions else part in parts for part, (_, end) in last.items()):
            self.lines.pop()
            self._end = self._last_start

    def forget(self, parts: Collection[TopicPartition]) -> None:
        """Begin again with these parts. After a crash there are all lines or those that stay. Raises KgctlError."""
        self.lines, texts = [], list[bytes]()
        for text in self._texts():
            line = Committed.from_line(text).without(parts)
            if line.moves:
                texts.append(line.to_line())
                self._keep(line)
        self.is_finished = self.is_finished and bool(texts)
        texts += [_FINISHED] * self.is_finished
        path = self.folder / OFFSETS
        try:
            replace_file(path, b"".join(texts))
            self._file.close()
            self._file = path.open("r+b")
        except OSError as error:
            raise self._not_written(error) from None
        self._end = sum(map(len, texts))
        self._last_start = self._end - (len(texts[-1]) if texts else 0)

    def close(self) -> None:
        self._file.close()

    def append(self, line: Committed) -> None:
        """Keep a transaction that is about to be committed. Raises KgctlError if that cannot be written."""
        self._write(line.to_line())
        self._keep(line)
        self.is_finished = False

    def finish(self) -> None:
        """All of the archive is replayed."""
        if not self.is_finished:
            self._write(_FINISHED)
            self.is_finished = True

    def offset_map(self, partition: TopicPartition) -> OffsetMap | None:
        """The newest unbroken sequence of transactions; None if there is none."""
        parts: list[Stretch] = []
        start = end = -1
        for line in self.lines:
            move = line.moves.get(partition)
            if move is None:
                continue
            if move[0] != end:
                parts, start = [], move[0]
            parts += line.stretches.get(partition, ())
            end = move[1]
        return None if start < 0 else OffsetMap(parts, start, end)

    def target_ends(self, topic: str) -> dict[int, int] | None:
        """By key: the offset after the last replayed record in each partition of a target that has any; None if not known."""
        found: dict[int, int] = {}
        for line in self.lines:
            if line.ends is None and any(part.topic == topic for part in line.moves):
                return None
            for key, end in (line.ends or {}).items():
                if key.topic == topic:
                    found[key.partition] = max(end, found.get(key.partition, 0))
        return found

    def _write(self, text: bytes) -> None:
        try:
            self._file.seek(self._end)
            self._file.truncate()
            self._file.write(text)
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise self._not_written(error) from None
        self._last_start, self._end = self._end, self._end + len(text)

    def _not_written(self, error: OSError) -> KgctlError:
        return KgctlError(f"{self.folder / OFFSETS}: cannot be written: {error.strerror}")


def _ends(lines: Sequence[Committed]) -> dict[TopicPartition, int]:
    return {partition: end for line in lines for partition, (_, end) in line.moves.items()}


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock the folder of a replay, which need not exist. Raises Busy, or KgctlError if it cannot be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = hold(folder / LOCK, folder, "runs this replay", option="--id")
    except OSError as error:
        raise KgctlError(
            f"{folder}: cannot be written: {error.strerror}; --state names another folder for what a replay keeps"
        ) from None
    try:
        yield
    finally:
        os.close(lock)


@contextmanager
def writing(folder: Path) -> Iterator[ReplayLog]:
    """Lock the folder of a replay, and read its log. Raises Busy, Damaged, KgctlError."""
    with locked(folder):
        path = folder / OFFSETS
        try:
            file = path.open("r+b" if path.exists() else "w+b")
        except OSError as error:
            raise KgctlError(f"{path}: cannot be opened: {error.strerror}") from None
        with contextlib.closing(ReplayLog(folder, file, has_stretches=False)) as log:
            yield log


def read_log(folder: Path) -> ReplayLog:
    """What a replay has written so far; its last line may not be committed. Raises Damaged."""
    try:
        with (folder / OFFSETS).open("rb") as file:
            return ReplayLog(folder, file)
    except FileNotFoundError:
        raise Damaged(f"{folder / OFFSETS} is missing: it says which offsets the records of this replay got") from None
    except OSError as error:
        raise KgctlError(f"{folder / OFFSETS}: cannot be read: {error.strerror}") from None


# --- settings ---


def keep_settings(folder: Path, content: Mapping[str, Any]) -> None:
    """For who holds the lock. Topics that another run has added since stay. Raises Precondition if that run chose otherwise."""
    found = kept_settings(folder)
    if found is not None:
        both = found["sources"].keys() & content["sources"].keys()
        ours, theirs = (
            {**one, "sources": {key: one["sources"][key] for key in both}, "counts": None} for one in (content, found)
        )
        if ours | {"format": FORMAT} != theirs | {"format": FORMAT}:
            raise Precondition(f"{folder}: another run has begun this replay meanwhile: give the same command again")
        counts = {**content.get("counts", {}), **found.get("counts", {})}
        content = {**content, "sources": {**found["sources"], **content["sources"]}, "counts": counts}
    replace_file(folder / SETTINGS, json.dumps({"format": FORMAT, **content}, indent=1, sort_keys=True).encode())


def kept_settings(folder: Path) -> dict[str, Any] | None:
    """What the first run of a replay has kept; None if there was none. Raises Damaged."""
    try:
        content: dict[str, Any] = json.loads((folder / SETTINGS).read_bytes())
        if content["format"] > FORMAT:
            raise ValueError(f"format {content['format']}, written by a newer kgctl; this one reads format {FORMAT}")
        if not isinstance(content["sources"], dict):
            raise ValueError("sources")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise KgctlError(f"{folder / SETTINGS}: cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError) as error:
        raise Damaged(f"{folder / SETTINGS}: the settings of the replay are damaged ({error})") from error
    return content
