"""A disk that loses unsynced writes: it records every operation, and builds what a power cut at any moment may leave.

Content is durable after a sync of the file, a name after a sync of its directory (SQLite syncs the directories of
its WAL and journal itself). Any part of the unsynced writes may survive: whole writes are kept, dropped or torn at a
sector.
"""

from __future__ import annotations

import os
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import apsw

from broker.storage import FileOps

SECTOR = 512


@dataclass
class Stored:
    durable: bytearray = field(default_factory=bytearray)
    pending: list[tuple[str, int, bytes]] = field(default_factory=list)  # (write | truncate, position or size, bytes)

    def sync(self) -> None:
        for change in self.pending:
            _apply(self.durable, *change)
        self.pending.clear()


@dataclass
class State:
    """Durable names, names in the page cache, and the content of files."""

    durable: dict[str, Stored | None] = field(default_factory=dict)  # None: a directory
    cached: dict[str, Stored | None] = field(default_factory=dict)


Event = tuple[str, str, int, bytes]  # kind, path or note, position, content


class EarlierOps(FileOps):
    """The disk before the power cut."""

    boot_id = b"before the cut"
    syncs_at_once = 1


class RecordingOps(EarlierOps):
    """Records what happens below `root`. Files that are there already count as durable."""

    def __init__(self, root: Path) -> None:
        self.root = str(root)
        self.events: list[Event] = []
        for path in sorted(root.rglob("*")):
            if path.is_dir():
                self.note("mkdir", str(path))
            else:
                self.note("create", str(path))
                self.note("write", str(path), 0, path.read_bytes())
        self.note("sync everything", self.root)
        self._paths: dict[int, str] = {}
        self._vfs = _RecordingVFS(self)
        self.sqlite_vfs = self._vfs.vfs_name

    def note(self, kind: str, path: str, position: int = 0, content: bytes = b"") -> None:
        self.events.append((kind, path, position, bytes(content)))

    def acknowledge(self, what: str) -> None:
        self.note("acknowledge", what)

    def open(self, path: str, flags: int) -> int:
        if not os.path.exists(path):
            self.note("create", path)
        fd = super().open(path, flags)
        self._paths[fd] = path
        return fd

    def pwrite(self, fd: int, content: Any, position: int) -> int:
        self.note("write", self._paths[fd], position, bytes(content))
        return super().pwrite(fd, content, position)

    def sync(self, fd: int) -> None:
        self.note("sync", self._paths[fd])

    def sync_directory(self, path: str) -> None:
        self.note("sync directory", path)

    def sync_everything(self) -> None:
        self.note("sync everything", self.root)

    def truncate(self, fd: int, size: int) -> None:
        self.note("truncate", self._paths[fd], size)
        super().truncate(fd, size)

    def mkdir(self, path: str) -> None:
        super().mkdir(path)
        self.note("mkdir", path)

    def unlink(self, path: str) -> None:
        super().unlink(path)
        self.note("unlink", path)

    def rmdir(self, path: str) -> None:
        super().rmdir(path)
        self.note("unlink", path)

    def rename(self, path: str, new_path: str) -> None:
        super().rename(path, new_path)
        self.note("rename", path, content=new_path.encode())

    # -- power cuts

    def state_after(self, count: int) -> State:
        """The disk and the page cache after the first `count` events."""
        state = State()
        for kind, path, position, content in self.events[:count]:
            if kind == "create":
                state.cached[path] = Stored()
            elif kind == "mkdir":
                state.cached[path] = None
            elif kind == "unlink":
                state.cached.pop(path, None)
            elif kind == "rename":
                for name in [name for name in state.cached if name == path or name.startswith(path + os.sep)]:
                    state.cached[content.decode() + name[len(path) :]] = state.cached.pop(name)
            elif kind in ("write", "truncate"):
                stored = state.cached[path]
                assert stored is not None
                stored.pending.append((kind, position, content))
            elif kind == "sync":
                stored = state.cached[path]
                assert stored is not None
                stored.sync()
                if path.endswith(("-wal", "-journal")):
                    state.durable[path] = stored
            elif kind == "sync everything":
                state.durable = dict(state.cached)
                for known in state.cached.values():
                    if known is not None:
                        known.sync()
            elif kind == "sync directory":
                for name in {*state.durable, *state.cached}:
                    if os.path.dirname(name) == path:
                        if name in state.cached:
                            state.durable[name] = state.cached[name]
                        else:
                            del state.durable[name]
        return state

    def image(self, count: int, target: Path, randomness: random.Random) -> None:
        """Write to `target` one of the states in which a power cut after `count` events may leave the data directory."""
        state = self.state_after(count)
        target.mkdir()
        for name in sorted({*state.durable, *state.cached}):
            in_both = name in state.durable and name in state.cached
            if not in_both and randomness.random() < 0.5:
                continue
            stored = state.durable[name] if name in state.durable else state.cached[name]
            path = target / os.path.relpath(name, self.root)
            if not path.parent.exists():
                continue
            if stored is None:
                path.mkdir(exist_ok=True)
            else:
                path.write_bytes(_after_a_cut(stored, randomness))


def _after_a_cut(stored: Stored, randomness: random.Random) -> bytes:
    content = bytearray(stored.durable)
    fate = randomness.choice(["all", "none", "some", "some"])
    for kind, position, written in stored.pending:
        if fate == "none" or (fate == "some" and randomness.random() < 0.5):
            continue
        if fate == "some" and kind == "write" and len(written) > SECTOR and randomness.random() < 0.3:
            cut = randomness.randrange(0, len(written), SECTOR)
            if randomness.random() < 0.5:
                _apply(content, kind, position, written[:cut])
            else:
                _apply(content, kind, position + cut, written[cut:])
        else:
            _apply(content, kind, position, written)
    return bytes(content)


def _apply(content: bytearray, kind: str, position: int, written: bytes) -> None:
    if kind == "truncate":
        del content[position:]
        content.extend(bytes(position - len(content)))
    else:
        content.extend(bytes(max(0, position - len(content))))
        content[position : position + len(written)] = written


class _RecordingFile(apsw.VFSFile):
    def __init__(self, ops: RecordingOps, name: Any, flags: list[int]) -> None:
        self._ops = ops
        self._path = "" if name is None else name if isinstance(name, str) else name.filename()
        if self._path and not os.path.exists(self._path):
            ops.note("create", self._path)
        super().__init__("", name, flags)

    def xWrite(self, content: bytes, offset: int) -> None:
        if self._path:
            self._ops.note("write", self._path, offset, content)
        super().xWrite(content, offset)

    def xTruncate(self, size: int) -> None:
        if self._path:
            self._ops.note("truncate", self._path, size)
        super().xTruncate(size)

    def xSync(self, flags: int) -> None:
        if self._path:
            self._ops.note("sync", self._path)


class _RecordingVFS(apsw.VFS):
    def __init__(self, ops: RecordingOps) -> None:
        self._ops = ops
        self.vfs_name = f"recording-{id(self):x}"
        super().__init__(self.vfs_name, "")

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:
        return _RecordingFile(self._ops, name, flags)

    def xDelete(self, name: str, sync_directory: bool) -> None:
        self._ops.note("unlink", name)
        if sync_directory:
            self._ops.note("sync directory", os.path.dirname(name))
        super().xDelete(name, sync_directory)
