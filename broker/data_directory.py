"""A data directory seen from outside: default location, lock, ready file, last run, type of file system."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import re
import sys
import time
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

LOCK_NAME, READY_NAME, LOG_NAME, RUN_NAME = "lock", "ready.json", "broker.log", "last-run.json"
# The reason of a run that recorded none.
KILLED = "killed, or the machine went down"
# A directory without any of these does not hold a broker's data. Formats 1 to 3 have `watermark`.
STORE_NAMES = frozenset(("store.db", "segments", "synced-ends", "commit-marker", "watermark"))
# Files that a failed start may leave before the store exists, and what an empty file system contains.
EARLY_NAMES = frozenset((LOCK_NAME, READY_NAME, LOG_NAME, RUN_NAME, "lost+found"))

# fmt: off
NETWORK_FILE_SYSTEMS = frozenset((
    "afs", "afpfs", "beegfs", "ceph", "cifs", "coda", "davfs", "fuse.ceph", "fuse.gcsfuse", "fuse.glusterfs",
    "fuse.rclone", "fuse.s3fs", "fuse.sshfs", "glusterfs", "gpfs", "lustre", "ncpfs", "nfs", "nfs4", "smb2", "smb3",
    "smbfs", "webdav",
))
# fmt: on


class HeldError(Exception):
    """Another broker holds the lock of the data directory."""


@dataclass(frozen=True, kw_only=True)
class Ready:
    """The content of the ready file of a broker that serves requests."""

    address: str
    pid: int
    data_dir: str
    log_file: str
    durability: str
    started_ms: int
    unimplemented_options: list[str]


@dataclass(frozen=True, kw_only=True)
class Run:
    """The last run on a data directory. `ended_ms` and `reason` are None until it ends, and stay None if it is killed."""

    pid: int
    started_ms: int
    ended_ms: int | None = None
    clean: bool = False
    reason: str | None = None


def default_data_dir() -> Path:
    """The default data directory of this user (XDG)."""
    home = os.environ.get("XDG_DATA_HOME", "")
    return Path(home if os.path.isabs(home) else Path.home() / ".local" / "share") / "kgctl" / "broker"


def hold(data_dir: Path) -> int:
    """Lock the directory until this process ends. Returns the file descriptor of the lock. Raises HeldError."""
    descriptor = os.open(data_dir / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    # `holder_pid` takes a shared lock for an instant: retry before giving up.
    for attempt in range(10):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except OSError as error:
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                raise
            if attempt == 9:
                os.close(descriptor)
                raise HeldError(_describe_holder(data_dir)) from None
            time.sleep(0.01)
    os.ftruncate(descriptor, 0)
    os.write(descriptor, f"{os.getpid()}\n".encode())
    return descriptor


def _describe_holder(data_dir: Path) -> str:
    ready = read_ready(data_dir / READY_NAME)
    pid = holder_pid(data_dir)
    if ready is not None and ready.pid == pid:
        return f"pid {pid}, at {ready.address}"
    return f"pid {pid}, not serving yet" if pid is not None else "another program"


def holder_pid(data_dir: Path) -> int | None:
    """The pid of the broker that holds the lock; None if there is none."""
    try:
        descriptor = os.open(data_dir / LOCK_NAME, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        text = os.read(descriptor, 32)
        return int(text) if text.strip().isdigit() else None
    finally:
        os.close(descriptor)
    return None


def running(data_dir: Path) -> Ready | None:
    """The ready file of the broker that serves this directory; None if there is none or the file is stale."""
    ready = read_ready(data_dir / READY_NAME)
    return ready if ready is not None and ready.pid == holder_pid(data_dir) else None


def read_ready(path: Path) -> Ready | None:
    try:
        content: dict[str, Any] = json.loads(path.read_bytes())
        # A later version may have more fields.
        return Ready(**{field.name: content[field.name] for field in fields(Ready)})
    except (OSError, ValueError, TypeError, KeyError):
        return None


def write_ready(path: Path, ready: Ready) -> None:
    _write_atomically(path, asdict(ready))


def _write_atomically(path: Path, content: dict[str, Any]) -> None:
    """Write a file atomically: a reader sees the old file, no file, or all of the new one."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_text(json.dumps(content) + "\n", encoding="utf-8")
        os.replace(temporary, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise OSError(error.errno, error.strerror, str(path)) from error


def remove_ready(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()


def remove_stale_ready(path: Path) -> None:
    """Remove a ready file if its broker no longer runs."""
    ready = read_ready(path)
    if ready is not None and holder_pid(Path(ready.data_dir)) != ready.pid:
        remove_ready(path)


def last_run(data_dir: Path) -> Run | None:
    """The record of the last run; None if there is none."""
    try:
        content: dict[str, Any] = json.loads((data_dir / RUN_NAME).read_bytes())
        return Run(**{field.name: content[field.name] for field in fields(Run)})
    except (OSError, ValueError, TypeError, KeyError):
        return None


def write_run(data_dir: Path, run: Run) -> None:
    _write_atomically(data_dir / RUN_NAME, asdict(run))


def is_foreign(data_dir: Path) -> bool:
    """Whether the directory holds files but no data of a broker."""
    names = set(os.listdir(data_dir))
    return not names & STORE_NAMES and bool(
        [name for name in names - EARLY_NAMES if not name.startswith((f".{READY_NAME}.", f".{RUN_NAME}.", LOG_NAME))]
    )


def network_file_system(path: Path) -> str | None:
    """The type of the network file system that holds `path`; None if it is local or unknown."""
    kind = _darwin_file_system(path) if sys.platform == "darwin" else _linux_file_system(path)
    return kind if kind in NETWORK_FILE_SYSTEMS else None


def _linux_file_system(path: Path) -> str | None:
    try:
        mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return None
    return file_system_of(os.path.realpath(path), mounts)


def file_system_of(path: str, mountinfo: str) -> str | None:
    """The type of the file system that holds the absolute `path`, according to Linux's mountinfo."""
    found, kind = "", None
    for line in mountinfo.splitlines():
        before, separator, after = line.partition(" - ")
        if not separator:
            continue
        mount_point = re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), before.split(" ")[4])
        inside = path == mount_point or path.startswith(mount_point.rstrip("/") + "/")
        # A later mount on the same mount point hides the earlier one.
        if inside and len(mount_point) >= len(found):
            found, kind = mount_point, after.split(" ")[0]
    return kind


def _darwin_file_system(path: Path) -> str | None:
    import ctypes

    # struct statfs with 64-bit inodes: f_fstypename is 16 bytes from offset 72.
    answer = ctypes.create_string_buffer(4096)
    library = ctypes.CDLL(None)
    statfs = getattr(library, "statfs$INODE64", None) or getattr(library, "statfs", None)
    if statfs is None or statfs(os.fsencode(path), answer) != 0:
        return None
    return answer.raw[72:88].split(b"\0")[0].decode("ascii", "replace")
