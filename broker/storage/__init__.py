"""Topics as segment files, everything else in SQLite: append, read, commit in rounds, recover."""

from broker.storage.catalog import EVENTS_TOPIC, OFFSETS_TOPIC, Topic
from broker.storage.errors import DamageError, NewerFormatError, StorageError
from broker.storage.files import FileOps
from broker.storage.log import Log
from broker.storage.partition_log import Appended, PartitionLog
from broker.storage.rows.event_rows import EventRow
from broker.storage.rows.offsets_rows import OffsetsRow
from broker.storage.segments.file_slice import FileSlice
from broker.storage.settings import LogSettings
from broker.storage.topic_configs import TOPIC_CONFIGS, TopicConfig

__all__ = [
    "EVENTS_TOPIC",
    "OFFSETS_TOPIC",
    "TOPIC_CONFIGS",
    "Appended",
    "DamageError",
    "EventRow",
    "FileOps",
    "FileSlice",
    "Log",
    "LogSettings",
    "NewerFormatError",
    "OffsetsRow",
    "PartitionLog",
    "StorageError",
    "Topic",
    "TopicConfig",
]
