"""librdkafka's mock cluster: several brokers in this process, with errors, leaders and outages on demand."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator
from pathlib import Path

import confluent_kafka

# Instead of an error code: the broker closes the connection.
CLOSE_CONNECTION = -195
_PRODUCER = 0
# The versions of JoinGroup, Heartbeat, LeaveGroup and SyncGroup that librdkafka's own consumer sends. The mock brokers offer later
# ones, but read them wrongly.
_GROUP_VERSIONS = {11: 5, 12: 3, 13: 1, 14: 3}
# What the first member of a group waits for others, instead of three seconds.
_REBALANCE_DELAY_MS = 50


def _library() -> ctypes.CDLL:
    folder = Path(confluent_kafka.__file__).parent.parent / "confluent_kafka.libs"
    (path,) = folder.glob("librdkafka*.so*")
    library = ctypes.CDLL(str(path))
    for name in ("rd_kafka_conf_new", "rd_kafka_new", "rd_kafka_mock_cluster_new"):
        getattr(library, name).restype = ctypes.c_void_p
    library.rd_kafka_mock_cluster_bootstraps.restype = ctypes.c_char_p
    return library


class MockCluster:
    """Brokers are numbered from 1. Topics are created at their first use, or by `create`."""

    def __init__(self, brokers: int) -> None:
        self._library = _library()
        conf = ctypes.c_void_p(self._library.rd_kafka_conf_new())
        error = ctypes.create_string_buffer(512)
        self._handle = ctypes.c_void_p(self._library.rd_kafka_new(_PRODUCER, conf, error, len(error)))
        assert self._handle, error.value
        self._cluster = ctypes.c_void_p(self._library.rd_kafka_mock_cluster_new(self._handle, brokers))
        for api_key, highest in _GROUP_VERSIONS.items():
            call = self._library.rd_kafka_mock_set_apiversion
            self._done(call(self._cluster, ctypes.c_int16(api_key), ctypes.c_int16(0), ctypes.c_int16(highest)))
        self._library.rd_kafka_mock_group_initial_rebalance_delay_ms(self._cluster, _REBALANCE_DELAY_MS)
        self.bootstrap_servers: str = self._library.rd_kafka_mock_cluster_bootstraps(self._cluster).decode()

    def create(self, topic: str, partitions: int, replicas: int = 1) -> None:
        self._done(self._library.rd_kafka_mock_topic_create(self._cluster, topic.encode(), partitions, replicas))

    def lead(self, topic: str, partition: int, broker: int) -> None:
        """Make a broker the leader of a partition."""
        call = self._library.rd_kafka_mock_partition_set_leader
        self._done(call(self._cluster, topic.encode(), partition, broker))

    def coordinate(self, group: str, broker: int) -> None:
        """Make a broker the coordinator of a group."""
        self._done(self._library.rd_kafka_mock_coordinator_set(self._cluster, b"group", group.encode(), broker))

    def place(self, broker: int, rack: str) -> None:
        """Put a broker into a rack."""
        self._done(self._library.rd_kafka_mock_broker_set_rack(self._cluster, broker, rack.encode()))

    def fail_next(self, api_key: int, *codes: int) -> None:
        """Answer the next requests of this kind with these errors, one each; 0 answers as usual.

        A Fetch has the error for the whole answer; other answers have it in each row.
        """
        array = (ctypes.c_int * len(codes))(*codes)
        self._library.rd_kafka_mock_push_request_errors_array(
            self._cluster, ctypes.c_int16(api_key), ctypes.c_size_t(len(codes)), array
        )

    def fail_partition(self, topic: str, partition: int, api_key: int, *codes: int) -> None:
        """Answer the next requests of this kind with these errors for one partition, one each."""
        call = self._library.rd_kafka_mock_partition_push_request_errors
        many = [ctypes.c_int(code) for code in codes]
        self._done(
            call(self._cluster, topic.encode(), partition, ctypes.c_int16(api_key), ctypes.c_size_t(len(many)), *many)
        )

    def clear(self, *api_keys: int) -> None:
        """Forget the errors that are still to come."""
        for api_key in api_keys:
            self._library.rd_kafka_mock_clear_request_errors(self._cluster, ctypes.c_int16(api_key))

    def stop(self, broker: int) -> None:
        """Close the connections of a broker and refuse new ones."""
        self._done(self._library.rd_kafka_mock_broker_set_down(self._cluster, broker))

    def start(self, broker: int) -> None:
        self._done(self._library.rd_kafka_mock_broker_set_up(self._cluster, broker))

    def delay(self, broker: int, milliseconds: int) -> None:
        """Answer the requests to a broker this much later."""
        self._done(self._library.rd_kafka_mock_broker_set_rtt(self._cluster, broker, milliseconds))

    def close(self) -> None:
        self._library.rd_kafka_mock_cluster_destroy(self._cluster)
        self._library.rd_kafka_destroy(self._handle)

    def _done(self, code: int) -> None:
        assert code == 0, f"librdkafka: error {code}"


@contextlib.contextmanager
def mock_cluster(brokers: int = 3) -> Iterator[MockCluster]:
    cluster = MockCluster(brokers)
    try:
        yield cluster
    finally:
        cluster.close()
