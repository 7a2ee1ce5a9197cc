"""Damages to store.db and store.db-wal of a data directory that no broker uses."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

from broker.storage.store.checked_pages import PAGE_BYTES
from tests.harness.stores import open_log

Damage = Callable[[Path, random.Random], None]


def both(change: Callable[[Path, random.Random], None]) -> Damage:
    def damage(path: Path, randomness: random.Random) -> None:
        for name in ("store.db", "store.db-wal"):
            change(path / name, randomness)

    return damage


def flip(file: Path, randomness: random.Random, low: int, high: int, count: int = 1) -> None:
    content = bytearray(file.read_bytes())
    for _ in range(count):
        content[randomness.randrange(low, min(high, len(content)))] ^= 1 << randomness.randrange(8)
    file.write_bytes(content)


def in_database(low: int, high: int, count: int = 1) -> Damage:
    """Flips in the file of the database, after its WAL was moved into it: every page counts."""

    def damage(path: Path, randomness: random.Random) -> None:
        open_log(path).close()
        flip(path / "store.db", randomness, low, high, count)

    return damage


def pages_of_kind(kind: int) -> Damage:
    def damage(path: Path, randomness: random.Random) -> None:
        open_log(path).close()
        file = path / "store.db"
        content = bytearray(file.read_bytes())
        starts = [at for at in range(PAGE_BYTES, len(content), PAGE_BYTES) if content[at] == kind]
        # A small store has no interior pages; its first page is one for both.
        for start in starts or [0]:
            content[start + randomness.randrange(PAGE_BYTES)] ^= 4
        file.write_bytes(content)

    return damage


def cut(file: Path, share: float) -> None:
    content = file.read_bytes()
    file.write_bytes(content[: int(len(content) * share)])


def truncated(share: float, *, with_wal: bool = True) -> Damage:
    def damage(path: Path, randomness: random.Random) -> None:
        open_log(path).close()
        cut(path / "store.db", share)
        if not with_wal:
            (path / "store.db-wal").unlink(missing_ok=True)

    return damage


def without(*names: str) -> Damage:
    def damage(path: Path, randomness: random.Random) -> None:
        for name in names:
            (path / name).unlink()

    return damage


def filled(name: str, byte: bytes | None) -> Damage:
    def damage(path: Path, randomness: random.Random) -> None:
        size = (path / name).stat().st_size
        (path / name).write_bytes(randomness.randbytes(size) if byte is None else byte * size)

    return damage


def pages_swapped(path: Path, randomness: random.Random) -> None:
    open_log(path).close()
    content = (path / "store.db").read_bytes()
    pages = [content[at : at + PAGE_BYTES] for at in range(0, len(content), PAGE_BYTES)]
    pages[1:] = pages[:0:-1]
    (path / "store.db").write_bytes(b"".join(pages))


def shifted(path: Path, randomness: random.Random) -> None:
    open_log(path).close()
    content = (path / "store.db").read_bytes()
    (path / "store.db").write_bytes(content[:3000] + content[3001:] + b"\0")


def overwritten(first: int, step: int, low: int = 0, high: int = PAGE_BYTES) -> Damage:
    """Zeros over part of every `step`th page."""

    def damage(path: Path, randomness: random.Random) -> None:
        open_log(path).close()
        content = bytearray((path / "store.db").read_bytes())
        for start in range(first * PAGE_BYTES, len(content), step * PAGE_BYTES):
            content[start + low : start + high] = bytes(high - low)
        (path / "store.db").write_bytes(content)

    return damage


DAMAGES: dict[str, Damage] = {
    "a flip in the file header": in_database(0, 16),
    "a flip in the page size": in_database(16, 18),
    "a flip in the schema": in_database(100, 4000),
    "flips in the schema": in_database(0, 4096, 30),
    "a flip in the page of the meta table": in_database(2 * PAGE_BYTES, 3 * PAGE_BYTES),
    "a flip in the page of the commits": in_database(3 * PAGE_BYTES, 4 * PAGE_BYTES),
    "a flip in the page of the topics": in_database(PAGE_BYTES, 2 * PAGE_BYTES),
    "a flip in each of the first pages": in_database(0, 20 * PAGE_BYTES, 60),
    "a thousand flips": in_database(0, 1 << 30, 1000),
    "all leaves of tables": pages_of_kind(0x0D),
    "all leaves of indexes": pages_of_kind(0x0A),
    "all interior pages of tables": pages_of_kind(0x05),
    "the file cut to nothing": truncated(0),
    "the file cut in the header": truncated(0.0005),
    "the file cut in the schema": truncated(0.02),
    "half of the file": truncated(0.5),
    "most of the file": truncated(0.9),
    "the file cut, the WAL gone": truncated(0.3, with_wal=False),
    "no store": without("store.db"),
    "no store and no WAL": without("store.db", "store.db-wal"),
    "no store, no WAL, no marker, no synced ends": without("store.db", "store.db-wal", "commit-marker", "synced-ends"),
    "zeros over the first page": overwritten(0, 1 << 30),
    "zeros over every third page": overwritten(1, 3),
    "zeros over all checksums": overwritten(0, 1, PAGE_BYTES - 8),
    "zeros": filled("store.db", b"\0"),
    "noise": both(lambda file, randomness: file.write_bytes(randomness.randbytes(file.stat().st_size))),
    "pages in the wrong order": pages_swapped,
    "one byte missing": shifted,
    "a foreign file": lambda path, _: (path / "store.db").write_text("-- a dump of another database\n" * 4000) and None,
}
