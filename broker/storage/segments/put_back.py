"""With accepted losses: put segment files that changed places back, so that nothing takes them for damaged ones.

The trailer of a file says which segment it is. A file without one is recognized by batches that the store or the synced
ends know. One that nothing knows leaves the place of another file only for the one place that is left for it.

Each file first gets a temporary name that says where it belongs. So a start that is killed, or a power cut, leaves it
under its old name, that one or the right one. No start removes files whose names end in .damaged.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator

from broker.light_dataclasses import dataclass
from broker.light_named_tuples import NamedTuple
from broker.storage.files import guarded
from broker.storage.segments.leftovers import DAMAGED_SUFFIX, damaged_files, keep_damaged, noted_deletions
from broker.storage.segments.rebuild import SEGMENT_NAME
from broker.storage.segments.segment_file import segment_name
from broker.storage.segments.shared import Shared
from broker.storage.segments.trailer import TRAILER_BYTES, parse_trailer
from broker.storage.segments.witnesses import NOTHING, Key, Reading, Witnesses
from broker.storage.store.catalog import Topics

logger = logging.getLogger(__name__)

_MOVING_SUFFIX = f".moving{DAMAGED_SUFFIX}"
_TOPIC_ID = re.compile(r"[0-9a-f]{32}")


class _Place(NamedTuple):
    """Where a segment file belongs."""

    topic_id: bytes
    partition: int
    base_offset: int
    revision: int

    @property
    def key(self) -> Key:
        return self[:3]

    def path(self, root: str) -> str:
        return f"{root}/{self.topic_id.hex()}/{self.partition}/{segment_name(self.base_offset, self.revision)}"


@dataclass(slots=True)
class _File:
    path: str
    place: _Place  # as its name says
    is_moving: bool = False  # the name is temporary
    home: _Place | None = None  # as far as it is proven, or the only place left
    is_proven: bool = True
    content: Reading = NOTHING

    @property
    def is_in_place(self) -> bool:
        return self.home == self.place and not self.is_moving


class PutBack:
    """Finds the files that are not in their places, and renames them."""

    def __init__(self, shared: Shared, topics: Topics) -> None:
        self._shared = shared
        self._topics = topics
        # A committed repair replaced these: they get other names soon.
        self._replaced = damaged_files(shared)
        self._witnesses = Witnesses(shared)
        self._found = list(self._files())
        self._at = {file.place: file for file in self._found if not file.is_moving}
        self._claimed: dict[_Place, _File] = {}
        self._neighbours: dict[str, set[tuple[bytes, int]]] = {}  # whose files a directory has

    def run(self) -> None:
        for file in self._found:
            self._recognize(file)
        # Those that are in their places first, then those that a killed start was moving.
        order = sorted(self._found, key=lambda file: (not file.is_in_place, not file.is_moving))
        for file in order:
            if file.home is not None and self._may_claim(file, file.home):
                self._claimed[file.home] = file
                self._neighbours.setdefault(os.path.dirname(file.path), set()).add(file.home.key[:2])
        for file in order:
            if file.home is None:
                self._claim_what_is_left(file)
        moves = self._possible_moves()
        if moves:
            self._move(moves)

    # -- which files there are

    def _files(self) -> Iterator[_File]:
        root = self._shared.root
        deleted = noted_deletions(self._shared.store)
        for topic_id in sorted(os.listdir(root)) if os.path.isdir(root) else ():
            if not _TOPIC_ID.fullmatch(topic_id) or topic_id in deleted or not os.path.isdir(f"{root}/{topic_id}"):
                continue
            for partition in sorted(os.listdir(os.path.join(root, topic_id))):
                directory = os.path.join(root, topic_id, partition)
                if partition.isdecimal() and str(int(partition)) == partition and os.path.isdir(directory):
                    yield from self._files_of(directory, bytes.fromhex(topic_id), int(partition))

    def _files_of(self, directory: str, topic_id: bytes, partition: int) -> Iterator[_File]:
        for name in sorted(os.listdir(directory)):
            path = os.path.join(directory, name)
            match = SEGMENT_NAME.fullmatch(name.removesuffix(_MOVING_SUFFIX))
            if match is not None and path not in self._replaced:
                place = _Place(topic_id, partition, int(match[1]), int(match[2] or 0))
                yield _File(path, place, name.endswith(_MOVING_SUFFIX))

    def _recognize(self, file: _File) -> None:
        """Set `home`, if anything proves it."""
        opened = self._shared.files.get(file.path)
        trailer = parse_trailer(opened.read(TRAILER_BYTES, max(0, opened.size() - TRAILER_BYTES)))
        if trailer is not None:
            file.home = _Place(*trailer[:4])
        elif file.is_moving or self._witnesses.confirm(file.path, file.place.key):
            file.home = file.place
        else:
            file.content = self._witnesses.read(file.path)
            keys = {mark.key for mark in file.content.confirmed}
            if file.place.key in keys:
                file.home = file.place
            elif len(keys) == 1:
                file.home = self._place_of(keys.pop())

    def _place_of(self, key: Key) -> _Place | None:
        revision = self._witnesses.revision(key)
        return _Place(*key, revision) if revision is not None else None

    def _is_possible(self, place: _Place) -> bool:
        topic = self._topics.by_id(place.topic_id)
        is_known = topic is not None and not topic.internal and place.partition < topic.partition_count
        path = place.path(self._shared.root)
        return (is_known or os.path.isdir(os.path.dirname(path))) and path not in self._replaced

    def _may_claim(self, file: _File, home: _Place) -> bool:
        if home in self._claimed or not self._is_possible(home):
            return False
        occupant = self._at.get(home)
        # A copy of a file that is still written may be older than what is left of the file.
        is_copy = occupant is not None and occupant.home is None and file.content.batches > 0
        return not (is_copy and occupant is not None and self._witnesses.share_batches(occupant.path, file.path))

    # -- files that nothing knows

    def _claim_what_is_left(self, file: _File) -> None:
        """A file without proof that is in the place of another, or among files of another partition, or full of other
        offsets: it belongs to the place that those left. Without such a place it stays, or is kept as *.damaged.
        """
        content, key = file.content, file.place.key
        owner = self._claimed.get(file.place)
        if owner is not None and self._witnesses.share_batches(file.path, owner.path):
            # This is what is left of the file that belongs here, and the other one is a copy of that.
            return
        is_other = content.batches > 1 and content.base_offset != file.place.base_offset
        neighbours = self._neighbours.get(os.path.dirname(file.path), set())
        moved_with = next(iter(neighbours)) if len(neighbours) == 1 else key[:2]
        places = {self._left_by_others(file)}
        if content.batches > 1:
            assert content.base_offset is not None
            places.add(self._place_of((*key[:2], content.base_offset)))
        is_elsewhere = moved_with != key[:2] and (owner is not None or self._witnesses.revision(key) is None)
        if is_elsewhere:
            base_offset = content.base_offset if content.base_offset is not None else key[2]
            places.add(self._place_of((*moved_with, base_offset)))
        elif owner is None and not is_other:
            return
        left = {place for place in places if place is not None and self._may_take(file, place)}
        if len({place.key for place in left}) == 1:
            file.home, file.is_proven = left.pop(), False
            self._claimed[file.home] = file

    def _left_by_others(self, file: _File) -> _Place | None:
        """The place that is empty once the file that belongs here has come, and so on; None if none is, or others fit."""
        place, seen = file.place, set[_Place]()
        while place in self._claimed and place not in seen:
            seen.add(place)
            came = self._claimed[place]
            if came.is_moving:
                return None
            place = came.place
        is_right = file.content.base_offset in (None, place.base_offset)
        return place if seen and is_right else None

    def _may_take(self, file: _File, place: _Place) -> bool:
        occupant = self._at.get(place)
        is_free = occupant is None or (not occupant.is_in_place and occupant is not file)
        return (
            is_free
            and place not in self._claimed
            and self._is_possible(place)
            and not self._witnesses.contradict(place.key, file.content)
        )

    # -- renaming

    def _possible_moves(self) -> dict[_Place, _File]:
        """The files to move. One without proof moves only to a place that is empty by then."""
        moves = {
            home: file
            for home, file in self._claimed.items()
            if not file.is_in_place and (file.path == self._waiting(home) or not os.path.lexists(self._waiting(home)))
        }
        while True:
            leaving = {file.place for file in moves.values() if not file.is_moving}
            possible = {
                home: file for home, file in moves.items() if file.is_proven or home not in self._at or home in leaving
            }
            if len(possible) == len(moves):
                return moves
            moves = possible

    def _waiting(self, home: _Place) -> str:
        return home.path(self._shared.root) + _MOVING_SUFFIX

    def _move(self, moves: dict[_Place, _File]) -> None:
        files = self._shared.files
        targets = {file.path: home.path(self._shared.root) for home, file in moves.items()}
        for path, target in targets.items():
            files.make_directories(os.path.dirname(target))
            logger.warning("%s holds the records of %s: it is put back", path, target)
        directories = sorted({os.path.dirname(path) for pair in targets.items() for path in pair})
        # Those without proof first: from then on their names say where they belong.
        for home, file in sorted(moves.items(), key=lambda move: move[1].is_proven):
            if file.path != self._waiting(home):
                self._rename(file.path, self._waiting(home))
        self._sync(directories)
        for home, target in zip(moves, targets.values(), strict=True):
            if os.path.lexists(target):
                kept = keep_damaged(files, target)
                logger.warning("%s is in the place of another file: it is kept as %s", target, os.path.basename(kept))
            self._rename(self._waiting(home), target)
        self._sync(directories)
        for file in moves.values():
            if file.place not in moves:
                files.unlink(file.path.removesuffix(".log") + ".index")

    def _rename(self, path: str, target: str) -> None:
        files = self._shared.files
        files.forget(path)
        files.forget(target)
        guarded("rename", path, files.ops.rename, path, target)

    def _sync(self, directories: list[str]) -> None:
        """With durability "process", too: a rename over another file must not come before that file's own."""
        for directory in directories:
            guarded("sync directory", directory, self._shared.files.ops.sync_directory, directory)
