"""Ready files: the address of a broker that serves requests, for programs that wait for it."""

from __future__ import annotations

import contextlib
import os
import stat
from dataclasses import asdict, fields
from pathlib import Path

from broker.atomic_file import FileId, read_json, remove_file, write_json
from broker.light_dataclasses import dataclass, field


class UnsafeReadyFileError(Exception):
    """Other users could replace a ready file, or it would replace something else. The text names file and reason."""


PLAINTEXT = "PLAINTEXT"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadyListener:
    """A listener of a broker that serves requests, and the address at which programs on this machine reach it."""

    name: str
    security_protocol: str
    address: str

    def __str__(self) -> str:
        return self.address if self.security_protocol == PLAINTEXT else f"{self.address} ({self.security_protocol})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """The content of the ready file of a broker that serves requests. `address` is that of its first listener."""

    address: str
    pid: int
    data_dir: str
    log_file: str
    durability: str
    started_ms: int
    unimplemented_options: list[str]
    listeners: list[ReadyListener] = field(default_factory=list)
    # The file of a Java client's configuration, if the broker was started with --secure.
    client_properties: str | None = None
    # The URL of the metrics, if they are served.
    metrics: str | None = None

    @property
    def security_protocol(self) -> str:
        """The protocol at `address`. Ready files of earlier versions do not name it."""
        return self.listeners[0].security_protocol if self.listeners else PLAINTEXT


# Fields that earlier versions do not write.
_LATER = ("listeners", "client_properties", "metrics")


def read_ready(path: Path) -> Ready | None:
    found = read_ready_file(path)
    return None if found is None else found[0]


def read_ready_file(path: Path) -> tuple[Ready, FileId] | None:
    """The content and the id of a ready file; None if there is none."""
    found = read_json(path)
    if found is None:
        return None
    content, file = found
    try:
        # A later version may have more fields.
        known = {entry.name: content[entry.name] for entry in fields(Ready) if entry.name not in _LATER}
        listeners = [_listener_of(each) for each in content.get("listeners", ())]
        ready = Ready(
            **known,
            listeners=listeners,
            client_properties=content.get("client_properties"),
            metrics=content.get("metrics"),
        )
    except (KeyError, TypeError):
        return None
    return (ready, file) if isinstance(ready.pid, int) and isinstance(ready.data_dir, str) else None


def _listener_of(content: dict[str, str]) -> ReadyListener:
    return ReadyListener(**{entry.name: content[entry.name] for entry in fields(ReadyListener)})


class ReadyFile:
    """A ready file of this broker, in a directory that stays open."""

    def __init__(self, path: Path, directory: int) -> None:
        self._path = path
        self._directory = directory
        self._written: FileId | None = None

    @classmethod
    def in_safe_directory(cls, path: Path) -> ReadyFile:
        """Raises UnsafeReadyFileError where another user than this one and root could replace the file, or where
        it would replace something that is no ready file."""
        directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            danger = _danger(directory, path)
            if danger is not None:
                raise UnsafeReadyFileError(
                    f"cannot write the ready file {path}: {danger}; give a file in a directory of your own"
                )
            _refuse_to_replace(directory, path)
        except UnsafeReadyFileError:
            os.close(directory)
            raise
        return cls(path, directory)

    def write(self, ready: Ready) -> None:
        """Raises UnsafeReadyFileError if something that is no ready file has appeared in its place."""
        _refuse_to_replace(self._directory, self._path)
        self._written = write_json(self._directory, self._path, asdict(ready))

    def remove(self) -> None:
        """Remove the file if this broker wrote it."""
        if self._written is not None:
            remove_file(self._directory, self._path.name, self._written)
            self._written = None

    def clear(self) -> None:
        """Remove the file, whoever wrote it."""
        with contextlib.suppress(OSError):
            os.unlink(self._path.name, dir_fd=self._directory)


def _danger(directory: int, path: Path) -> str | None:
    """Why others could replace the file; None if they cannot. Members of the directory's group are trusted."""
    status = os.fstat(directory)
    if status.st_uid not in (0, os.geteuid()):
        return f"the directory belongs to another user (uid {status.st_uid})"
    if status.st_mode & stat.S_IWOTH and not status.st_mode & stat.S_ISVTX:
        return "every user may replace files in its directory, which has no sticky bit"
    try:
        owner = os.stat(path.name, dir_fd=directory, follow_symlinks=False).st_uid
    except FileNotFoundError:
        return None
    return None if owner == os.geteuid() else f"it exists and belongs to another user (uid {owner})"


def _refuse_to_replace(directory: int, path: Path) -> None:
    """Let a ready file replace only an older one, an empty file and a link: never a device or a file with other content."""
    try:
        status = os.stat(path.name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return
    if stat.S_ISLNK(status.st_mode):
        return
    if stat.S_ISREG(status.st_mode):
        found = read_json(Path(path.name), directory)
        if status.st_size == 0 or (found is not None and "address" in found[0]):
            return
    raise UnsafeReadyFileError(
        f"cannot write the ready file {path}: it exists and is not a ready file; give a file that does not exist"
    )
