"""A data directory seen from outside: default location, names in it, last run, type of file system."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import asdict, fields
from pathlib import Path

from broker.atomic_file import read_json, write_json
from broker.light_dataclasses import dataclass

LOCK_NAME, READY_NAME, LOG_NAME, RUN_NAME = "lock", "ready.json", "broker.log", "last-run.json"
# The folder that `--secure` makes: the certificate of its authority, and the password of its user.
SECURITY_NAME, CA_NAME, PASSWORD_NAME, ADMIN = "security", "ca.pem", "admin-password", "admin"
# The reason of a run that recorded none.
KILLED = "killed, or the machine went down"
# A directory without any of these does not hold a broker's data. Formats 1 to 3 have `watermark`.
STORE_NAMES = frozenset(("store.db", "segments", "synced-ends", "commit-marker", "watermark"))
# Files that a failed start may leave before the store exists, and what an empty file system contains.
EARLY_NAMES = frozenset((LOCK_NAME, READY_NAME, LOG_NAME, RUN_NAME, SECURITY_NAME, "lost+found"))

# fmt: off
NETWORK_FILE_SYSTEMS = frozenset((
    "afs", "afpfs", "beegfs", "ceph", "cifs", "coda", "davfs", "fuse.ceph", "fuse.gcsfuse", "fuse.glusterfs",
    "fuse.rclone", "fuse.s3fs", "fuse.sshfs", "glusterfs", "gpfs", "lustre", "ncpfs", "nfs", "nfs4", "smb2", "smb3",
    "smbfs", "webdav",
))
# fmt: on


@dataclass(frozen=True, slots=True, kw_only=True)
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


def last_run(data_dir: Path) -> Run | None:
    """The record of the last run; None if there is none."""
    found = read_json(data_dir / RUN_NAME)
    try:
        return None if found is None else Run(**{field.name: found[0][field.name] for field in fields(Run)})
    except KeyError:
        return None


def write_run(directory: int, data_dir: Path, run: Run) -> None:
    """Write the record into the open data directory, which is at `data_dir` unless it was moved."""
    write_json(directory, data_dir / RUN_NAME, asdict(run))


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
