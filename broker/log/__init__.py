"""Topics as segment files, everything else in SQLite: append, read, commit in rounds, recover."""

from broker.log.catalog import EVENTS_TOPIC, OFFSETS_TOPIC, Topic
from broker.log.errors import DamageError, NewerFormatError, StorageError
from broker.log.event_rows import EventRow
from broker.log.file_slice import FileSlice
from broker.log.files import FileOps
from broker.log.log import Log
from broker.log.offsets_rows import OffsetsRow
from broker.log.partition_log import Appended, PartitionLog
from broker.log.settings import LogSettings
from broker.log.topic_configs import TOPIC_CONFIGS, TopicConfig

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
