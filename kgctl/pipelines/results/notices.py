"""Which verdicts a sink gets, and what it has got: changes at once, faults again after a while.

OUT/_sinks/<kind>-<digest>.json has an entry per group. It is written before a notice is sent and after, so that a notice
whose delivery failed, or is not known, is sent again with the id it had.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from kgctl.pipelines.results.tables import OK
from kgctl.pipelines.results.targets import Target
from kgctl.pipelines.results.verdicts import Verdict
from kgctl.pipelines.tables.replacing import replace_file

FOLDER = "_sinks"
VERSION = 1
_NAMESPACE = uuid.UUID("5b0c4d0e-7d0f-5a53-9d0c-6b1f6f2f4a77")

Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Entry:
    """The last notice about a group. `since_ms`: the first evaluation with this status. `number`: how often it was repeated."""

    status: str
    since_ms: int
    previous: str | None
    number: int
    sent_ms: int | None


@dataclass(frozen=True, slots=True)
class Notice:
    """A verdict to send. `id` is the same in every attempt to send it, and another one for each repetition."""

    id: str
    verdict: Verdict
    entry: Entry

    @property
    def key(self) -> Key:
        return self.verdict.table, self.verdict.group


class Ledger:
    """What one sink has got. `wants_healthy`: it also gets groups that were healthy from the start."""

    def __init__(self, out: Path, target: Target, cluster: str, *, wants_healthy: bool) -> None:
        digest = hashlib.sha256(target.where.encode()).hexdigest()[:16]
        self._path = out / FOLDER / f"{target.kind}-{digest}.json"
        self._cluster, self._wants_healthy = cluster, wants_healthy
        self._entries = _read(self._path)

    def due(self, verdicts: Sequence[Verdict], tables: Collection[str], repeat_ms: int, now_ms: int) -> list[Notice]:
        """The notices to send; they are noted on disk. `verdicts` are all that there are in `tables`.

        A group without a verdict any more is OK, with nothing judged, and forgotten when that is sent.
        """
        found = {(one.table, one.group): one for one in verdicts}
        entries: dict[Key, Entry] = {}
        for key, entry in self._entries.items():
            if key[0] not in tables:
                entries[key] = entry
            elif key not in found and not (entry.status == OK and entry.sent_ms is not None):
                gone = entry if entry.status == OK else Entry(OK, now_ms, entry.status, 0, None)
                entries[key] = gone
                found[key] = Verdict(*key, gone.since_ms, OK, 0, {}, None, ())
        for one in verdicts:
            before = self._entries.get((one.table, one.group))
            entries[one.table, one.group] = self._next(one, before, repeat_ms, now_ms)
        self._replace(entries)
        return [
            self._notice(found[key], entry) for key, entry in entries.items() if key in found and entry.sent_ms is None
        ]

    def sent(self, notices: Iterable[Notice], now_ms: int) -> None:
        done = {notice.key: replace(notice.entry, sent_ms=now_ms) for notice in notices}
        self._replace(self._entries | done)

    def _next(self, one: Verdict, before: Entry | None, repeat_ms: int, now_ms: int) -> Entry:
        if before is None or before.status != one.status:
            is_silent = before is None and one.status == OK and not self._wants_healthy
            previous = None if before is None else before.status
            return Entry(one.status, one.at_ms, previous, 0, now_ms if is_silent else None)
        if before.sent_ms is not None and one.is_fault and now_ms - before.sent_ms >= repeat_ms:
            return replace(before, number=before.number + 1, sent_ms=None)
        return before

    def _notice(self, one: Verdict, entry: Entry) -> Notice:
        name = json.dumps([self._cluster, one.table, one.group, entry.status, entry.since_ms, entry.number])
        return Notice(str(uuid.uuid5(_NAMESPACE, name)), one, entry)

    def _replace(self, entries: dict[Key, Entry]) -> None:
        if entries == self._entries and self._path.exists():
            return
        self._entries = entries
        rows = [[*key, asdict(entry)] for key, entry in sorted(entries.items())]
        self._path.parent.mkdir(exist_ok=True)
        replace_file(self._path, json.dumps({"version": VERSION, "groups": rows}).encode())


def _read(path: Path) -> dict[Key, Entry]:
    """Empty if the file is missing or unreadable: then every verdict counts as new, and none is lost."""
    try:
        content = json.loads(path.read_bytes())
        return {(table, group): Entry(**entry) for table, group, entry in content["groups"]}
    except (OSError, ValueError, TypeError, KeyError):
        return {}
