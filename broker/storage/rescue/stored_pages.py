"""The pages of a damaged store.db and of its WAL: which version of each page counts, and whether it is intact."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

from broker.light_named_tuples import NamedTuple
from broker.storage.rescue.reading import SourceFile
from broker.storage.store.checked_pages import PAGE_BYTES, page_is_intact
from broker.storage.store.wal_frames import frames

_U32 = struct.Struct(">I")


class Page(NamedTuple):
    """One version of a page. `outdated`: a newer version of it is damaged or missing."""

    number: int
    content: bytes
    intact: bool
    outdated: bool


class _Place(NamedTuple):
    file: SourceFile
    position: int
    number: int


class StoredPages:
    """Pages by number: the newest intact version, and the damaged versions after it."""

    def __init__(self, directory: Path) -> None:
        self._intact: dict[int, _Place] = {}
        self._damaged: dict[int, list[_Place]] = {}
        self._page_count = 0  # of the database after the last commit, as far as it is known
        self.problems: list[str] = []
        self._read_database(directory / "store.db")
        self._read_wal(directory / "store.db-wal")
        self.free = self._free_pages()

    def __iter__(self) -> Iterator[Page]:
        """The versions that count: the newest intact one of each page, and damaged ones that are newer."""
        for number in sorted({*self._intact, *self._damaged}):
            damaged = self._damaged.get(number, [])
            place = self._intact.get(number)
            if place is not None:
                yield Page(number, self._content(place), intact=True, outdated=bool(damaged))
            for place in damaged:
                yield Page(number, self._content(place), intact=False, outdated=False)

    def content(self, number: int) -> bytes | None:
        """The newest intact version of a page."""
        place = self._intact.get(number)
        return None if place is None else self._content(place)

    @property
    def is_complete(self) -> bool:
        """Every page is there and intact, and the list of free pages is known."""
        return not self.problems and self.free is not None

    def _content(self, place: _Place) -> bytes:
        return place.file.read(place.position, PAGE_BYTES)

    # -- files

    def _read_database(self, path: Path) -> None:
        if not path.exists():
            self.problems.append(f"{path} is missing")
            return
        file = SourceFile(path)
        size = file.size
        damaged = 0
        for number in range(1, -(-size // PAGE_BYTES) + 1):
            place = _Place(file, (number - 1) * PAGE_BYTES, number)
            if page_is_intact(self._content(place), number):
                self._intact[number] = place
            else:
                damaged += 1
                self._damaged[number] = [place]
        first = self.content(1)
        if first is not None:
            self._page_count = _U32.unpack_from(first, 28)[0]
        if damaged:
            self.problems.append(f"{path}: {damaged} of {-(-size // PAGE_BYTES)} pages are damaged")
        elif size < self._page_count * PAGE_BYTES:
            self.problems.append(f"{path} is truncated: it has {size} bytes of {self._page_count * PAGE_BYTES}")
        elif size == 0:
            self.problems.append(f"{path} is empty")

    def _read_wal(self, path: Path) -> None:
        """Take each frame of the current generation whose checksum continues the one stored before it."""
        if not path.exists():
            return
        file = SourceFile(path)
        damaged = 0
        for frame in frames(file.read, file.size):
            place = _Place(file, frame.content_at, frame.number)
            if frame.is_intact:
                self._intact[frame.number] = place
                self._damaged.pop(frame.number, None)
                self._page_count = frame.page_count or self._page_count
            else:
                damaged += 1
                self._damaged.setdefault(frame.number, []).append(place)
        if damaged:
            self.problems.append(f"{path}: {damaged} pages are damaged")

    def _free_pages(self) -> set[int] | None:
        """The pages that belong to no table; None if the list of them cannot be read."""
        first = self.content(1)
        if first is None or 1 in self._damaged:
            return None
        free: set[int] = set()
        trunk = _U32.unpack_from(first, 32)[0]
        while trunk:
            content = self.content(trunk)
            if content is None or trunk in free or trunk in self._damaged:
                return None
            count = min(_U32.unpack_from(content, 4)[0], PAGE_BYTES // 4 - 2)
            free.add(trunk)
            free.update(struct.unpack_from(f">{count}I", content, 8))
            trunk = _U32.unpack_from(content)[0]
        return free
