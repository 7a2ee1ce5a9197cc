"""Damage to a data directory at rest, chosen by a seed."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from tests.durability.images import Image

STORE, WAL, MARKER, ENDS = "store.db", "store.db-wal", "commit-marker", "synced-ends"
FILES = (STORE, WAL, MARKER, ENDS)


@dataclass
class Damage:
    """What was done."""

    words: list[str] = field(default_factory=list)
    files: set[str] = field(default_factory=set)
    """Damaged files, relative to the data directory."""

    def __str__(self) -> str:
        return ", ".join(self.words)

    @property
    def leaves_no_evidence(self) -> bool:
        """All that says how far the broker came is as old as each other: only segments are newer."""
        return self.files.issuperset(FILES)


class Vandal:
    """Damages one copy of an image."""

    def __init__(self, directory: Path, image: Image, random: Random) -> None:
        self._directory, self._image, self._random = directory, image, random
        self._topics = {topic_id.hex(): name for name, (_, topic_id) in image.ledger.topics.items()}
        self.damage = Damage()

    def damage_at_random(self) -> Damage:
        random = self._random
        kind = random.random()
        if kind < 0.62:
            self._one()
        elif kind < 0.75:
            self._one()
            self._one()
        elif kind < 0.90:
            self._roll_back(random.choice(ROLLED_BACK))
            if random.random() < 0.3:
                self._change(self._segment(active=True), self._cut)
        else:
            random.choice((self._lose_store, self._lose_ends_and_tail, self._lose_directory, self._swap_directories))()
        return self.damage

    def damage_under_a_broker(self) -> None:
        """The file stays where it is, or goes, while a broker has it open."""
        random = self._random
        name = random.choice((STORE, WAL, WAL, MARKER, ENDS, self._segment(active=True), self._segment(active=False)))
        ways = (self._flip_bit, self._randomize, self._zero, self._cut, self._extend, self._delete, self._put_older)
        self._change(name, random.choice(ways))

    # -- which file

    def _names(self, suffix: str) -> list[str]:
        """Files of topics in an order that depends on the seed alone: topic ids are random."""
        found = [str(path.relative_to(self._directory)) for path in (self._directory / "segments").rglob(f"*{suffix}")]
        return sorted((name for name in found if ".deleted" not in name), key=self._label)

    def _label(self, name: str) -> str:
        """The name with the name of the topic in place of its id."""
        for topic_id, topic in self._topics.items():
            name = name.replace(topic_id, topic)
        return name

    def _segment(self, *, active: bool) -> str:
        by_partition: dict[Path, list[str]] = {}
        for name in self._names(".log"):
            by_partition.setdefault(Path(name).parent, []).append(name)
        names = [name for found in by_partition.values() for name in (found[-1:] if active else found[:-1])]
        return self._random.choice(names or self._names(".log"))

    def _one(self) -> None:
        random = self._random
        kinds: list[Callable[[], str]] = [
            *[lambda: STORE] * 3,
            *[lambda: WAL] * 4,
            *[lambda: MARKER] * 2,
            *[lambda: ENDS] * 3,
            *[lambda: self._segment(active=False)] * 4,
            *[lambda: self._segment(active=True)] * 5,
            *[lambda: random.choice(self._names(".index"))] * 2,
        ]
        described = self._names("topic.json")
        if described:
            kinds.append(lambda: random.choice(described))
        name = random.choice(kinds)()
        if not self._size(name):
            name = STORE
        ways = [
            *[self._flip_bit] * 5,
            *[self._flip_byte] * 2,
            self._randomize,
            self._zero,
            *[self._cut] * 4,
            self._extend,
            *[self._delete] * 2,
            *[self._swap] * 2,
            *[self._put_older] * 2,
        ]
        self._change(name, random.choice(ways))

    def _size(self, name: str) -> int:
        path = self._directory / name
        return path.stat().st_size if path.exists() else 0

    def _change(self, name: str, way: Callable[[str], str]) -> None:
        self.damage.files.add(name)
        self.damage.words.append(f"{self._label(name)}: {way(name)}")

    # -- how

    def _position(self, content: bytes) -> int:
        """A position that matters: not one in preallocated zeros, as a rule."""
        used = len(content.rstrip(b"\0")) or len(content)
        return self._random.randrange(used if self._random.random() < 0.95 else len(content))

    def _edit(self, name: str, change: Callable[[bytearray], str]) -> str:
        path = self._directory / name
        content = bytearray(path.read_bytes() if path.exists() else b"")
        if not content:
            return "is empty already"
        said = change(content)
        path.write_bytes(content)
        return said

    def _flip_bit(self, name: str) -> str:
        def change(content: bytearray) -> str:
            at, bit = self._position(content), self._random.randrange(8)
            content[at] ^= 1 << bit
            return f"flipped bit {bit} of byte {at} of {len(content)}"

        return self._edit(name, change)

    def _flip_byte(self, name: str) -> str:
        def change(content: bytearray) -> str:
            at = self._position(content)
            content[at] ^= self._random.randrange(1, 256)
            return f"changed byte {at} of {len(content)}"

        return self._edit(name, change)

    def _range(self, content: bytearray) -> tuple[int, int]:
        at = self._position(content)
        return at, min(len(content), at + self._random.choice((4, 64, 512, 4096)))

    def _randomize(self, name: str) -> str:
        def change(content: bytearray) -> str:
            start, end = self._range(content)
            content[start:end] = self._random.randbytes(end - start)
            return f"random bytes from {start} to {end}"

        return self._edit(name, change)

    def _zero(self, name: str) -> str:
        def change(content: bytearray) -> str:
            start, end = self._range(content)
            content[start:end] = bytes(end - start)
            return f"zeros from {start} to {end}"

        return self._edit(name, change)

    def _cut(self, name: str) -> str:
        def change(content: bytearray) -> str:
            at = self._position(content) if self._random.random() < 0.9 else 0
            size = len(content)
            del content[at:]
            return f"cut from {size} to {at} bytes"

        return self._edit(name, change)

    def _extend(self, name: str) -> str:
        def change(content: bytearray) -> str:
            size, count = len(content), self._random.choice((1, 32, 64, 500, 5000))
            start = self._position(content)
            more = self._random.choice(
                (
                    bytes(count),
                    self._random.randbytes(count),
                    bytes(content[start : start + count]),
                    bytes(content[:count]),
                )
            )
            if self._random.random() < 0.5:
                # Behind the data instead of behind the preallocated zeros. The last byte of a record is a zero.
                del content[len(content.rstrip(b"\0")) + 1 :]
            content += more
            return f"extended from {size} to {len(content)} bytes"

        return self._edit(name, change)

    def _delete(self, name: str) -> str:
        (self._directory / name).unlink(missing_ok=True)
        return "deleted"

    def _swap(self, name: str) -> str:
        """Swap it with another file of its kind; those with the same name first."""
        if name in FILES:
            return self._put_older(name)
        path = Path(name)
        others = [other for other in self._names(path.suffix) if other != name]
        same = [other for other in others if Path(other).name == path.name]
        if not others:
            return self._flip_bit(name)
        other = self._random.choice(same or others)
        one, two = self._directory / name, self._directory / other
        content = one.read_bytes()
        one.write_bytes(two.read_bytes())
        two.write_bytes(content)
        self.damage.files.add(other)
        return f"swapped with {self._label(other)}"

    def _put_older(self, name: str) -> str:
        found = [at for at, older in enumerate(self._image.earlier) if (older / name).exists()]
        if not found:
            return self._cut(name)
        at = self._random.choice(found)
        shutil.copyfile(self._image.earlier[at] / name, self._directory / name)
        return f"replaced by its copy of run {at}"

    # -- combinations

    def _roll_back(self, names: tuple[str, ...]) -> None:
        at = self._random.randrange(len(self._image.earlier))
        for name in names:
            older, path = self._image.earlier[at] / name, self._directory / name
            path.unlink(missing_ok=True)
            if older.exists():
                shutil.copyfile(older, path)
            self.damage.files.add(name)
        self.damage.words.append(f"{' + '.join(names)}: replaced by their copies of run {at}")

    def _lose_store(self) -> None:
        names = self._random.choice(
            ((STORE, WAL), (STORE, WAL, MARKER), (STORE, WAL, MARKER, ENDS), (STORE,), (WAL, MARKER))
        )
        for name in names:
            self._change(name, self._delete)

    def _lose_ends_and_tail(self) -> None:
        way = self._random.choice((self._delete, self._zero_all, self._empty, self._put_older, self._flip_bit))
        self._change(ENDS, way)
        self._change(self._segment(active=True), self._cut)

    def _empty(self, name: str) -> str:
        (self._directory / name).write_bytes(b"")
        return "emptied"

    def _zero_all(self, name: str) -> str:
        path = self._directory / name
        path.write_bytes(bytes(path.stat().st_size if path.exists() else 0))
        return "filled with zeros"

    def _lose_directory(self) -> None:
        path = self._directory / self._segment(active=self._random.random() < 0.5)
        doomed = path.parent if self._random.random() < 0.7 else path.parent.parent
        for name in self._names(".log"):
            if doomed in (self._directory / name).parents:
                self.damage.files.add(name)
        shutil.rmtree(doomed)
        self.damage.words.append(f"{self._label(str(doomed.relative_to(self._directory)))}: deleted")

    def _swap_directories(self) -> None:
        """Swap the directories of two partitions."""
        found = list(dict.fromkeys((self._directory / name).parent for name in self._names(".log")))
        one, two = self._random.sample(found, 2)
        between = one.with_name("between")
        for name in self._names(".log"):
            if (self._directory / name).parent in (one, two):
                self.damage.files.add(name)
        one.rename(between)
        two.rename(one)
        between.rename(two)
        shown = " and ".join(self._label(str(path.relative_to(self._directory))) for path in (one, two))
        self.damage.words.append(f"{shown}: swapped")


# Files that a backup or a copy may bring back together. Segments stay as they are.
ROLLED_BACK = (
    (STORE, WAL),
    (STORE, WAL, MARKER),
    (STORE, WAL, MARKER),
    (STORE, WAL, ENDS),
    (WAL, MARKER),
    (MARKER, ENDS),
    (STORE, WAL, MARKER, ENDS),
)
