"""The journal of one cluster: for each change a file with what was there before, and lines that say what was done.

A change begins with its file and its first line, both durable before anything changes. The process locks the file until
the change has ended, so that others can see whether a change without a last line is still running.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from broker.atomic_file import replace_file
from broker.light_dataclasses import dataclass, field, replace
from kgctl.client.net.errors import NotFound
from kgctl.journal.documents import as_bytes, read_file
from kgctl.journal.files import CannotKeep, make_folder
from kgctl.journal.lines import FILE, append, locked, read_lines, replace_lines
from kgctl.journal.places import cluster_folder, journal_folder
from kgctl.journal.results import DONE, PARTLY, RUNNING, UNFINISHED, Results
from kgctl.model.items import Item
from kgctl.model.plans import ENTRY, VERSION, Entry, JournalRow, Plan, Snapshot

MOST_ENTRIES, MOST_DAYS = 1000, 90
# Old entries are removed some at a time, because this writes the whole file again.
_SLACK = 50
# Keys of rows, and what became of them.
Exceptions = Sequence[tuple[tuple[Any, ...], str]]
_ID = re.compile(r"\d{8}-\d{6}-[0-9a-f]{4}")
_DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class Origin:
    """Who makes a change, and how."""

    user: str
    host: str
    address: str
    context: str | None
    command: str
    undoes: str | None = None


@dataclass(slots=True)
class Begun:
    """A change that has begun; `end` says how it ended."""

    folder: Path
    entry: Entry
    _lock: int | None = field(repr=False)

    @property
    def id(self) -> str:
        return self.entry.id

    def correct(self, entry: Entry) -> None:
        """Keep another plan and state, as they were right before the change. Raises CannotKeep."""
        with _keeping(self.folder):
            replace_file(self.folder / f"{self.id}.json", as_bytes(entry))
        self.entry = entry

    def end(self, outcome: str, message: str | None = None, exceptions: Exceptions | None = ()) -> None:
        """`exceptions`: the rows that were not done, if they are kept. Raises CannotKeep: then the change counts as unfinished."""
        line: dict[str, Any] = {"id": self.id, "ended_ms": _now_ms(), "outcome": outcome, "message": message}
        if exceptions is not None:
            line["exceptions"] = [[list(key), text] for key, text in exceptions]
        try:
            with _keeping(self.folder):
                append(self.folder, line)
        finally:
            self.release()

    def release(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


class Journal:
    """The journal of one cluster on this machine."""

    def __init__(self, environ: Mapping[str, str], cluster_id: str) -> None:
        self.folder = cluster_folder(environ, cluster_id)

    def begin(self, plan: Plan, before: Snapshot, origin: Origin, items: Sequence[Item] = ()) -> Begun:
        """Keep what is there before the change. Raises CannotKeep; then the change must not be made."""
        import fcntl

        moment = _now_ms()
        name = f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime(moment / 1000))}-{secrets.token_hex(2)}"
        entry = Entry(ENTRY, VERSION, name, plan, before, tuple(items))
        with _keeping(self.folder):
            make_folder(self.folder)
            path = self.folder / f"{name}.json"
            replace_file(path, as_bytes(entry))
            lock = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            begun = Begun(self.folder, entry, lock)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX)
                append(self.folder, _first_line(entry, origin, moment))
            except OSError:
                begun.release()
                with contextlib.suppress(OSError):
                    path.unlink()
                raise
        self._forget_old(moment)
        return begun

    def rows(self) -> list[JournalRow]:
        """The changes, oldest first. Raises CannotKeep."""
        with _keeping(self.folder, "read"):
            return rows_in(self.folder)

    def entry(self, name: str) -> Entry:
        """What was kept of a change. Raises NotFound."""
        path = self.folder / f"{name}.json"
        if not _ID.fullmatch(name) or not path.exists():
            raise NotFound(f"there is no change {name!r} in {self.folder}; see `kgctl journal`")
        return read_file(Entry, path)

    def _forget_old(self, moment: int) -> None:
        """Remove what is too old. A failure does not matter: the next change tries again."""
        with contextlib.suppress(OSError, CannotKeep):
            rows = self.rows()
            oldest = moment - MOST_DAYS * _DAY_MS
            if len(rows) <= MOST_ENTRIES + _SLACK and (not rows or rows[0].time_ms > oldest - _DAY_MS):
                return
            with locked(self.folder):
                rows = self.rows()
                known = {row.id for row in rows}
                kept = {row.id for row in rows[-MOST_ENTRIES:] if row.time_ms > oldest or row.outcome == RUNNING}
                replace_lines(self.folder, (line for line in read_lines(self.folder) if line["id"] in kept))
                for path in self.folder.iterdir():
                    # Also what a killed command left before its first line, and files that it had not finished.
                    is_old = path.stat().st_mtime * 1000 < moment - _DAY_MS or path.stem in known - kept
                    if path.name != FILE and path.stem not in kept and is_old and not _is_locked(path):
                        path.unlink(missing_ok=True)


def all_rows(environ: Mapping[str, str]) -> list[JournalRow]:
    """The changes of all clusters, oldest first. Raises CannotKeep."""
    place = journal_folder(environ)
    with _keeping(place, "read"):
        try:
            folders = sorted(path for path in place.iterdir() if path.is_dir())
        except FileNotFoundError:
            return []
        rows = [row for folder in folders for row in rows_in(folder)]
    return sorted(rows, key=lambda row: (row.time_ms, row.id))


def results_of(environ: Mapping[str, str], row: JournalRow) -> Results:
    """What became of the rows of a change. Raises CannotKeep."""
    folder = Journal(environ, row.cluster_id).folder
    found: Any = None
    with _keeping(folder, "read"):
        for line in read_lines(folder):
            if line["id"] == row.id and "outcome" in line:
                found = line.get("exceptions")
    known = {tuple(key): str(text) for key, text in found} if isinstance(found, list) else None
    return Results(row.outcome, row.message, known)


def find_entry(environ: Mapping[str, str], name: str) -> tuple[Entry, JournalRow]:
    """A change of any cluster. Raises NotFound."""
    for row in all_rows(environ):
        if row.id == name:
            return Journal(environ, row.cluster_id).entry(name), row
    raise NotFound(f"there is no change {name!r} in {journal_folder(environ)}; see `kgctl journal`")


def rows_in(folder: Path) -> list[JournalRow]:
    rows: dict[str, JournalRow] = {}
    undone: dict[str, str] = {}
    for line in read_lines(folder):
        name = line["id"]
        if "outcome" in line:
            if name in rows:
                rows[name] = replace(rows[name], outcome=str(line["outcome"]), message=_text(line.get("message")))
            continue
        row = _row(line)
        if row is not None:
            rows[name] = row
    for row in rows.values():
        if row.undoes is not None and row.outcome in (DONE, PARTLY):
            undone[row.undoes] = row.id
    found = sorted(rows.values(), key=lambda row: (row.time_ms, row.id))
    return [
        replace(
            row,
            undone_by=undone.get(row.id),
            outcome=RUNNING if row.outcome == UNFINISHED and _is_locked(folder / f"{row.id}.json") else row.outcome,
        )
        for row in found
    ]


def _first_line(entry: Entry, origin: Origin, moment: int) -> dict[str, Any]:
    return {
        "id": entry.id,
        "time_ms": moment,
        "verb": entry.plan.verb,
        "groups": [one.group for one in entry.plan.groups],
        "items": list(dict.fromkeys(item.subject for item in entry.items)),
        "user": origin.user,
        "host": origin.host,
        "cluster_id": entry.plan.cluster_id,
        "address": origin.address,
        "context": origin.context,
        "command": origin.command,
        "undoes": origin.undoes,
    }


def _row(line: dict[str, Any]) -> JournalRow | None:
    try:
        return JournalRow(
            line["id"],
            int(line["time_ms"]),
            str(line["verb"]),
            tuple(map(str, line["groups"])),
            UNFINISHED,
            str(line["user"]),
            str(line["host"]),
            str(line["cluster_id"]),
            str(line["address"]),
            _text(line.get("context")),
            str(line["command"]),
            _text(line.get("undoes")),
            items=tuple(map(str, line.get("items", ()))),
        )
    except (KeyError, TypeError, ValueError):
        return None


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _is_locked(path: Path) -> bool:
    import fcntl

    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


@contextlib.contextmanager
def _keeping(folder: Path, what: str = "write") -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise CannotKeep(f"cannot {what} the journal in {folder}: {error.strerror}") from None


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
