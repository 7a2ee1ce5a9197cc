"""Everything on disk: topics as segment files, internal topics and state in SQLite. `Log` is the face."""

from broker.storage.errors import DamageError, NewerFormatError, OutOfDescriptors, ReplacedError, StorageError
from broker.storage.file_ops import FileOps, HeldDirectory
from broker.storage.files import FileSlice
from broker.storage.log import Log
from broker.storage.partition_log import LEADER_EPOCH, AbortedTransaction, Appended, PartitionLog, ProducerState
from broker.storage.rows.declarations import EVENTS_TOPIC, OFFSETS_TOPIC, SHARE_STATE_TOPIC, TRANSACTIONS_TOPIC
from broker.storage.rows.pending_offsets import StoredPendingOffset, StoredPendingOffsets
from broker.storage.rows.row_partition import RowPartition
from broker.storage.rows.stored_groups import StoredGroups
from broker.storage.rows.stored_transactions import StoredTransactions
from broker.storage.rows.topic_row import RowLike, TopicRow
from broker.storage.settings import LogSettings
from broker.storage.store.catalog import Topic
from broker.storage.store.security_records import SecurityRecords
from broker.storage.topic_configs import TOPIC_CONFIGS, TopicConfig

__all__ = [
    "EVENTS_TOPIC",
    "LEADER_EPOCH",
    "OFFSETS_TOPIC",
    "SHARE_STATE_TOPIC",
    "TOPIC_CONFIGS",
    "TRANSACTIONS_TOPIC",
    "AbortedTransaction",
    "Appended",
    "DamageError",
    "FileOps",
    "FileSlice",
    "HeldDirectory",
    "Log",
    "LogSettings",
    "NewerFormatError",
    "OutOfDescriptors",
    "PartitionLog",
    "ProducerState",
    "ReplacedError",
    "RowLike",
    "RowPartition",
    "SecurityRecords",
    "StorageError",
    "StoredGroups",
    "StoredPendingOffset",
    "StoredPendingOffsets",
    "StoredTransactions",
    "Topic",
    "TopicConfig",
    "TopicRow",
]
