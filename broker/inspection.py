"""Reading a data directory offline, or beside the broker that uses it: nothing in it is written."""

from __future__ import annotations

import os
from pathlib import Path

from broker.data_directory import STORE_NAMES
from broker.directory_lock import find_holder
from broker.storage.errors import DamageError, StorageError, StoreDamageError, StoreMissingError
from broker.storage.inspection.checks import Check, Damage, Progress, unlisted_files
from broker.storage.inspection.checks import verify as check_all
from broker.storage.inspection.partitions import StoredPartition, StoredProducer, StoredSegment, StoredTopic
from broker.storage.inspection.reader import ABORTED, COMMITTED, OPEN, ROW_TOPICS, BatchOfRecords, DataDirectory
from broker.storage.inspection.store_copy import Report

__all__ = [
    "ABORTED",
    "COMMITTED",
    "OPEN",
    "ROW_TOPICS",
    "BatchOfRecords",
    "Check",
    "Damage",
    "DamageError",
    "DataDirectory",
    "NoData",
    "StorageError",
    "StoreDamageError",
    "StoreMissingError",
    "StoredPartition",
    "StoredProducer",
    "StoredSegment",
    "StoredTopic",
    "inspect",
    "unlisted_files",
    "verify",
]


class NoData(Exception):
    """The directory holds no data of a broker."""


def inspect(data_dir: Path, report: Report = lambda _: None, *, damaged_too: bool = False) -> DataDirectory:
    """Open the directory. `report` gets sentences about what takes long. NoData, StorageError: it cannot be read.

    `damaged_too`: also if SQLite cannot open the store; whatever asks for its rows then raises the error.
    """
    try:
        names = os.listdir(data_dir)
    except FileNotFoundError:
        raise NoData(f"there is no directory {data_dir}") from None
    except NotADirectoryError:
        raise NoData(f"{data_dir} is a file; name the data directory") from None
    except OSError as error:
        raise StorageError(f"cannot read {data_dir}: {error.strerror}") from error
    if not STORE_NAMES.intersection(names):
        raise NoData(f"{data_dir} holds no data of a broker")
    directory = DataDirectory(data_dir, is_in_use=find_holder(data_dir) is not None, report=report)
    failure = directory.copy.failure
    if failure is not None and not (damaged_too and isinstance(failure, DamageError)):
        directory.close()
        raise failure
    return directory


def verify(directory: DataDirectory, progress: Progress) -> list[Check]:
    """Check everything that has a checksum, and what the files prove of each other."""
    return list(check_all(directory, lambda: inspect(directory.path), progress))
