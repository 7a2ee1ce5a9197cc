"""Describes a cluster: brokers with rack and listeners, features, API versions, log directories."""

from __future__ import annotations

from collections.abc import Sequence

from broker.protocol.api_keys import APIS
from broker.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from broker.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from broker.protocol.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from broker.protocol.messages.metadata import MetadataRequest, MetadataResponse
from kgctl.client.admin.configs import BROKER, Resource, describe_configs
from kgctl.client.net.authorization import Asked
from kgctl.client.net.cluster import Ask, Cluster, Node
from kgctl.client.net.errors import BrokerError, KgctlError, Unsupported
from kgctl.client.net.steps import Steps
from kgctl.model.cluster_rows import ApiRow, BrokerRow, FeatureRow, LogDirRow
from kgctl.model.failure import RowError

METADATA_VERSION = "metadata.version"
LISTENERS, ADVERTISED = "listeners", "advertised.listeners"
# Kafka's MetadataVersion: the releases by their first and last level.
_RELEASES = (
    ("3.0", 1),
    ("3.1", 2),
    ("3.2", 3),
    ("3.3", 7),
    ("3.4", 8),
    ("3.5", 11),
    ("3.6", 14),
    ("3.7", 19),
    ("3.8", 20),
    ("3.9", 21),
    ("4.0", 25),
    ("4.1", 27),
    ("4.2", 29),
)


def release_of(level: int) -> str | None:
    """The release of Kafka that introduced a level of metadata.version; None for one that is newer than this table."""
    return next((release for release, last in _RELEASES if 0 < level <= last), None)


def describe_cluster(cluster: Cluster) -> Steps[tuple[list[BrokerRow], list[RowError]]]:
    """A row per broker, and why columns are empty."""
    answer = yield from _brokers(cluster)
    yield from cluster.metadata([])
    nodes = yield from cluster.all_nodes()
    missing: list[RowError] = []
    listeners = yield from _listeners(cluster, [str(node.node_id) for node in nodes], missing)
    directories = yield from _directories(cluster, nodes)
    release = release_of(cluster.feature_level(METADATA_VERSION))
    rows = []
    for row in sorted(answer.brokers, key=lambda row: row.broker_id):
        found = directories.get(row.broker_id, [])
        failed = next((one.error for one in found if one.error), None)
        known = [one for one in found if one.log_dir is not None]
        rows.append(
            BrokerRow(
                row.broker_id,
                f"{row.host}:{row.port}",
                row.rack,
                row.broker_id == answer.controller_id,
                row.is_fenced,
                answer.cluster_id,
                release,
                listeners.get(str(row.broker_id), ()),
                tuple(one.log_dir or "" for one in known),
                sum(one.partitions or 0 for one in known) if known else None,
                sum(one.size_bytes or 0 for one in known) if known else None,
                failed if failed and failed.name in ("UNREACHABLE", "TIMED_OUT") else None,
            )
        )
        if failed and rows[-1].error is None and failed not in missing:
            missing.append(failed)
    return rows, missing


def features(cluster: Cluster) -> Steps[list[FeatureRow]]:
    """Finalized levels, and what every broker supports."""
    nodes = yield from cluster.all_nodes()
    request = ApiVersionsRequest(client_software_name="kgctl", client_software_version="0.1")
    answers = yield from cluster.ask_each([Ask(node.endpoint, request, ApiVersionsResponse, 3) for node in nodes])
    levels: dict[str, int] = {}
    ranges: dict[str, list[tuple[int, int]]] = {}
    answered = [answer for answer in answers if not isinstance(answer, KgctlError)]
    if not answered:
        raise next(answer for answer in answers if isinstance(answer, KgctlError))
    for answer in answered:
        levels |= {row.name: row.max_version_level for row in answer.finalized_features}
        for row in answer.supported_features:
            ranges.setdefault(row.name, []).append((row.min_version, row.max_version))
    rows = []
    for name in sorted(levels.keys() | ranges.keys()):
        supported = ranges.get(name)
        # One that is not finalized is disabled.
        level = levels.get(name, 0)
        release = release_of(level) if name == METADATA_VERSION and level else None
        low, high = (max(one[0] for one in supported), min(one[1] for one in supported)) if supported else (None, None)
        rows.append(FeatureRow(name, level, release, low, high))
    return rows


def api_versions(cluster: Cluster) -> Steps[list[ApiRow]]:
    nodes = yield from cluster.all_nodes()
    request = MetadataRequest(topics=[], allow_auto_topic_creation=False)
    answers = yield from cluster.ask_each([Ask(node.endpoint, request, MetadataResponse, 4) for node in nodes])
    rows = []
    for node, answer in zip(nodes, answers, strict=True):
        if isinstance(answer, KgctlError):
            rows.append(ApiRow(node.node_id, None, None, error=answer.as_row()))
            continue
        offered, _ = cluster.offers(node.endpoint)
        for key, (low, high) in sorted(offered.items()):
            ours = APIS[key].request.VERSIONS if key in APIS else None
            used = min(high, ours[-1]) if ours else None
            usable = used is not None and ours is not None and used >= max(low, ours[0])
            rows.append(
                ApiRow(node.node_id, key, APIS[key].name if ours else str(key), low, high, used if usable else None)
            )
    return rows


def log_dirs(cluster: Cluster) -> Steps[list[LogDirRow]]:
    nodes = yield from cluster.all_nodes()
    found = yield from _directories(cluster, nodes)
    return [row for number in sorted(found) for row in found[number]]


def _brokers(cluster: Cluster) -> Steps[DescribeClusterResponse]:
    try:
        request = DescribeClusterRequest(include_cluster_authorized_operations=False, include_fenced_brokers=True)
        answer = yield from cluster.ask_any(request, DescribeClusterResponse)
    except Unsupported:
        # Before Kafka 2.8.
        metadata = yield from cluster.metadata([])
        rows = [
            DescribeClusterResponse.Broker(broker_id=row.node_id, host=row.host, port=row.port, rack=row.rack)
            for row in metadata.brokers
        ]
        return DescribeClusterResponse(
            cluster_id=metadata.cluster_id or "", controller_id=metadata.controller_id, brokers=rows
        )
    if answer.error_code:
        asked = Asked(DescribeClusterRequest)
        raise BrokerError(answer.error_code, "the cluster", answer.error_message, asked=asked)
    return answer


def _listeners(cluster: Cluster, names: Sequence[str], missing: list[RowError]) -> Steps[dict[str, tuple[str, ...]]]:
    """The advertised listeners of each broker, or the listeners where none are advertised."""
    resources = [Resource(BROKER, name) for name in names]
    try:
        rows = yield from describe_configs(cluster, resources, [LISTENERS, ADVERTISED])
    except KgctlError as error:
        missing.append(error.as_row())
        return {}
    values: dict[str, dict[str, str]] = {}
    for row in rows:
        if row.error and row.error.name != "NOT_FOUND" and row.error not in missing:
            missing.append(row.error)
        if row.config and row.value:
            values.setdefault(row.resource, {})[row.config] = row.value
    return {
        name: tuple(part.strip() for part in (found.get(ADVERTISED) or found.get(LISTENERS) or "").split(",") if part)
        for name, found in values.items()
    }


def _directories(cluster: Cluster, nodes: Sequence[Node]) -> Steps[dict[int, list[LogDirRow]]]:
    request = DescribeLogDirsRequest(topics=None)
    answers = yield from cluster.ask_each([Ask(node.endpoint, request, DescribeLogDirsResponse) for node in nodes])
    return {node.node_id: _rows(node.node_id, answer) for node, answer in zip(nodes, answers, strict=True)}


def _rows(broker: int, answer: DescribeLogDirsResponse | KgctlError) -> list[LogDirRow]:
    asked = Asked(DescribeLogDirsRequest)
    if isinstance(answer, KgctlError):
        return [LogDirRow(broker, None, error=answer.as_row())]
    if answer.error_code:
        failed = BrokerError(answer.error_code, f"log directories of broker {broker}", asked=asked)
        return [LogDirRow(broker, None, error=failed.as_row())]
    if not answer.results:
        # Before v3, a broker answers a client without the permission with nothing.
        denied = RowError("CLUSTER_AUTHORIZATION_FAILED", f"broker {broker} reports no log directories")
        return [LogDirRow(broker, None, error=denied)]
    rows = []
    for one in sorted(answer.results, key=lambda row: row.log_dir):
        error = BrokerError(one.error_code, one.log_dir, asked=asked).as_row() if one.error_code else None
        sizes = [row.partition_size for topic in one.topics for row in topic.partitions]
        total, usable = (None if number < 0 else number for number in (one.total_bytes, one.usable_bytes))
        rows.append(LogDirRow(broker, one.log_dir, len(sizes), sum(sizes), total, usable, error))
    return rows
