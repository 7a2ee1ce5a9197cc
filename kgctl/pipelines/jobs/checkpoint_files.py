"""Finds damage in the files of one of Spark's checkpoints before Spark reads it. Does not import Spark.

metadata                 {"id": "..."}
offsets/N                what batch N reads: "v1", a line of JSON, one for each source; written before the batch
commits/N                "v1", a line of JSON; written after the batch
state/OPERATOR/_metadata what the stateful operator is: v2/N or, from older versions of Spark, metadata. It names the files
                         of the schema with their absolute paths
state/OPERATOR/PARTITION what a stateful query remembers: N+1.zip is the state after batch N, N+1.changelog what changed
.NAME.crc                checksums of NAME as Hadoop writes them: "crc\\0", bytes per checksum, a CRC-32 per piece

Spark reads the last two of `offsets` and the last of `commits`. It does not notice that the last of `offsets` is missing,
and would then give the number of a batch that is in the tables to records that are not.
"""

from __future__ import annotations

import json
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from kgctl.client.net.errors import Precondition

_CRC_HEADER = struct.Struct(">4sI")
_CRC_MAGIC = b"crc\0"
OTHER_OUT = "restore it from a backup, or give another --out, which reads the topics again"
MOVED = "Spark looks for it where it was before the checkpoint was moved to"
MOVE_BACK = "move the folder back, or give another --out, which reads the topics again"


class DamagedCheckpoint(Precondition):
    """A file of a checkpoint is missing or not as it was written."""

    def __init__(self, path: Path, what: str, remedy: str) -> None:
        super().__init__(f"the checkpoint is damaged: {path} {what}; {remedy}")


def verify(checkpoint: Path, last_in_tables: int | None) -> None:
    """Raises DamagedCheckpoint. `last_in_tables` is the highest batch number of this checkpoint that a table holds."""
    offsets, commits = _numbers(checkpoint / "offsets"), _numbers(checkpoint / "commits")
    if commits:
        _verify_commit(checkpoint / "commits" / str(commits[-1]), commits[-1])
    done = max([-1 if last_in_tables is None else last_in_tables, *commits[-1:]])
    if done >= 0 and (not offsets or offsets[-1] < done):
        raise DamagedCheckpoint(checkpoint / "offsets" / str(done), "is missing", OTHER_OUT)
    if not offsets:
        return
    _verify_entry(checkpoint / "metadata", OTHER_OUT, has_version=False)
    if commits:
        for operator in sorted((checkpoint / "state").glob("[0-9]*")):
            _verify_operator(checkpoint, operator / "_metadata")
    last = offsets[-1]
    remedy = (
        OTHER_OUT
        if last <= done
        else "remove it: nothing was written from it, and the next run reads the records again"
    )
    _verify_entry(checkpoint / "offsets" / str(last), remedy, lines=2)
    if last > 0:
        _verify_entry(checkpoint / "offsets" / str(last - 1), OTHER_OUT, lines=2)
    for path in sorted((checkpoint / "sources").glob("*/*")):
        _verify_checksum(path, OTHER_OUT)


def remove_stray_checksums(checkpoint: Path) -> None:
    """Those of plans and commits that are gone. Hadoop would not replace them, and Spark would suspect a second query."""
    for folder in ("offsets", "commits"):
        for sums in (checkpoint / folder).glob(".[0-9]*.crc"):
            if not sums.with_name(sums.name.removeprefix(".").removesuffix(".crc")).exists():
                sums.unlink()


def last_planned(checkpoint: Path) -> int:
    """The number of the last batch whose offsets are there, -1 if there is none."""
    return max(_numbers(checkpoint / "offsets"), default=-1)


def verify_state(checkpoint: Path) -> None:
    """Raises DamagedCheckpoint for a file of the state that the next batch needs. Reads all of them."""
    committed = _numbers(checkpoint / "commits")
    if not committed:
        return
    version = committed[-1] + 1
    for operator in sorted((checkpoint / "state").glob("[0-9]*")):
        for folder in sorted(operator.glob("[0-9]*")):
            for path in _needed(folder, version):
                if not path.exists():
                    raise DamagedCheckpoint(path, "is missing", OTHER_OUT)
                _verify_checksum(path, OTHER_OUT)
                if path.suffix == ".zip":
                    _verify_snapshot(path)


def _verify_operator(checkpoint: Path, folder: Path) -> None:
    """The newest file that describes the operator, and the files of the schema that it names."""
    if not folder.is_dir():
        return
    numbers = _numbers(folder / "v2")
    path = folder / "v2" / str(max(numbers, default=0)) if (folder / "v2").is_dir() else folder / "metadata"
    _verify_entry(path, OTHER_OUT)
    for line in path.read_bytes().splitlines()[1:]:
        for store in json.loads(line).get("stateStoreInfo", ()):
            for schema in store.get("stateSchemaFilePaths", ()):
                _verify_schema(checkpoint, Path(schema.removeprefix("file:")))


def _verify_schema(checkpoint: Path, path: Path) -> None:
    is_here = path.is_relative_to(checkpoint)
    if not path.exists():
        raise DamagedCheckpoint(path, "is missing", OTHER_OUT if is_here else f"{MOVED} {checkpoint}: {MOVE_BACK}")
    if not path.stat().st_size:
        raise DamagedCheckpoint(path, "is empty", OTHER_OUT)
    _verify_checksum(path, OTHER_OUT)


def _needed(folder: Path, version: int) -> Iterator[Path]:
    """The newest snapshot up to the version, and the changes after it."""
    snapshots = sorted(int(path.stem) for path in folder.glob("*.zip") if path.stem.isdecimal())
    first = max((one for one in snapshots if one <= version), default=None)
    has_changes = any(folder.glob("*.changelog"))
    if first is None or (first < version and not has_changes):
        yield folder / f"{version}.zip"
        return
    yield folder / f"{first}.zip"
    for number in range(first + 1, version + 1):
        yield folder / f"{number}.changelog"


def _verify_snapshot(path: Path) -> None:
    """A zip file, whose entry `metadata` names the files of RocksDB that belong to it, in the folder SSTs beside it."""
    try:
        with zipfile.ZipFile(path) as snapshot:
            if snapshot.testzip() is not None:
                raise ValueError
            files = json.loads(snapshot.read("metadata").partition(b"\n")[2])["sstFiles"]
            sizes = {str(one["dfsSstFileName"]): int(one["sizeBytes"]) for one in files}
    except (ValueError, KeyError, TypeError, EOFError, OSError, zipfile.BadZipFile, zlib.error):
        raise DamagedCheckpoint(path, "is not as Spark wrote it", OTHER_OUT) from None
    for name, size in sizes.items():
        file = path.parent / "SSTs" / name
        if not file.exists():
            raise DamagedCheckpoint(file, "is missing", OTHER_OUT)
        if file.stat().st_size != size:
            raise DamagedCheckpoint(file, f"has {file.stat().st_size} bytes instead of {size}", OTHER_OUT)
        _verify_checksum(file, OTHER_OUT)


def _numbers(folder: Path) -> list[int]:
    return sorted(int(path.name) for path in folder.glob("[0-9]*") if path.name.isdecimal())


def _verify_commit(path: Path, number: int) -> None:
    remedy = f"remove it: the next run repeats batch {number}, which changes nothing"
    _verify_entry(path, remedy, lines=1)


def _verify_entry(path: Path, remedy: str, *, lines: int = 1, has_version: bool = True) -> None:
    """A small text file: perhaps a version, then at least `lines` lines of JSON; "-" stands for a source without offsets."""
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        raise DamagedCheckpoint(path, "is missing", remedy) from None
    except OSError as error:
        raise DamagedCheckpoint(path, f"cannot be read ({error.strerror})", remedy) from None
    if not text:
        raise DamagedCheckpoint(path, "is empty", remedy)
    _verify_checksum(path, remedy)
    version, _, rest = text.partition(b"\n") if has_version else (b"v1", b"", text)
    found = rest.splitlines()
    if not version.startswith(b"v") or len(found) < lines or not all(map(_is_json, found)):
        raise DamagedCheckpoint(path, "is not as Spark wrote it", remedy)


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return line == b"-"
    return True


def _verify_checksum(path: Path, remedy: str) -> None:
    """Files without checksums are accepted, as by Hadoop."""
    sums = path.with_name(f".{path.name}.crc")
    try:
        found = sums.read_bytes()
    except FileNotFoundError:
        return
    size = path.stat().st_size
    magic, piece = _CRC_HEADER.unpack_from(found) if len(found) >= _CRC_HEADER.size else (b"", 0)
    if magic != _CRC_MAGIC or piece == 0:
        raise DamagedCheckpoint(sums, "is no file of checksums", "remove it: it is not necessary")
    pieces = -(-size // piece)
    if len(found) != _CRC_HEADER.size + 4 * pieces:
        raise DamagedCheckpoint(path, "does not have the length that its checksums were made for", remedy)
    with path.open("rb") as file:
        for (expected,) in struct.iter_unpack(">I", found[_CRC_HEADER.size :]):
            if zlib.crc32(file.read(piece)) != expected:
                raise DamagedCheckpoint(path, "does not match its checksums", remedy)
