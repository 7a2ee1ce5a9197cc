"""Rescue of a data directory whose store is damaged: offline, into a new directory. The old one stays as it is."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from broker.data_directory import EARLY_NAMES, STORE_NAMES
from broker.directory_lock import HeldError, hold
from broker.storage.errors import StorageError
from broker.storage.rescue.build import DRAFT_NAME, build
from broker.storage.rescue.plan import RescuePlan
from broker.storage.rescue.plan import plan_rescue as read_all
from broker.storage.rescue.reading import Progress

__all__ = ["HeldError", "NoData", "RescuePlan", "StorageError", "Unusable", "holding", "plan_rescue", "rescue"]

Report = Callable[[int], None]

# Indexes, the store and the files of the topics come on top of the segments.
SPARE_BYTES = 64 << 20


class Unusable(Exception):
    """The new directory cannot be used; the message says why."""


class NoData(Exception):
    """The damaged directory holds no data of a broker."""


@contextlib.contextmanager
def holding(data_dir: Path) -> Iterator[None]:
    """Keep brokers away from the damaged directory. HeldError: one uses it."""
    if not data_dir.is_dir() or not STORE_NAMES.intersection(os.listdir(data_dir)):
        raise NoData(f"{data_dir} holds no data of a broker")
    try:
        held = hold(data_dir)
    except OSError as error:
        if error.errno != errno.EROFS:
            raise
        # No broker can run on a file system that is mounted read-only.
        yield
        return
    try:
        yield
    finally:
        held.close()


def plan_rescue(data_dir: Path, report: Report) -> RescuePlan:
    """Read all of the directory. `report` gets the bytes of records so far, every few seconds."""
    return read_all(data_dir, Progress(report))


def rescue(plan: RescuePlan, into: Path, report: Report) -> None:
    """Build a data directory in `into`, which is missing or empty. Unusable or StorageError: it is no data directory yet."""
    into = into.resolve()
    if into.is_relative_to(plan.data_dir.resolve()):
        raise Unusable(f"{into} is part of the damaged directory")
    into.mkdir(mode=0o700, parents=True, exist_ok=True)
    others = set(os.listdir(into)) - EARLY_NAMES - {DRAFT_NAME}
    if others:
        raise Unusable(f"{into} is not empty: it has {', '.join(sorted(others)[:3])}")
    free = shutil.disk_usage(into).free
    if free < plan.size_bytes + SPARE_BYTES:
        needed = (plan.size_bytes + SPARE_BYTES) >> 20
        raise Unusable(f"{into} has {free >> 20} MiB of free space; the rescue needs {needed} MiB")
    held = hold(into)
    try:
        build(plan, into, Progress(report))
    finally:
        held.close()
