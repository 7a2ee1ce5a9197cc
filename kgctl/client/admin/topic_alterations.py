"""Changes topics: adds partitions, sets and unsets configs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from broker.light_dataclasses import replace
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
from kgctl.client.admin.configs import TOPIC, Resource, change_configs, plan_configs
from kgctl.client.admin.topics import SERVER_WAIT_MS, list_topics
from kgctl.client.net.authorization import Asked
from kgctl.client.net.cluster import Ask, Batch, Cluster, Node
from kgctl.client.net.errors import BrokerError, KgctlError, Precondition
from kgctl.client.net.read_only import ReadOnly
from kgctl.client.net.steps import Steps
from kgctl.model.changes import DONE, FAILED, PLANNED
from kgctl.model.configs import ConfigChange, TopicAlteration

PARTITIONS = "partitions"


def plan_alterations(
    cluster: Cluster, topics: Sequence[str], partitions: int | None, configs: Mapping[str, str | None]
) -> Steps[list[TopicAlteration]]:
    """What would change in each topic. The cluster checks it without a change."""
    found = {row.topic: row for row in (yield from list_topics(cluster, sorted(set(topics))))}
    plan: list[TopicAlteration] = []
    for topic in dict.fromkeys(topics):
        row = found[topic]
        if row.error:
            plan.append(TopicAlteration(topic, PARTITIONS, None, None, FAILED, row.error))
        elif partitions is not None:
            plan.append(_planned_partitions(topic, row.partitions, partitions))
    checked = yield from _add_partitions(cluster, plan, only_check=True)
    present = [Resource(TOPIC, topic) for topic in dict.fromkeys(topics) if not found[topic].error]
    changes = (yield from plan_configs(cluster, present, configs)) if configs and present else []
    return sorted(
        [*checked, *map(_as_row, changes)], key=lambda row: (row.topic, row.setting != PARTITIONS, row.setting)
    )


def alter_topics(cluster: Cluster, plan: Sequence[TopicAlteration]) -> Steps[list[TopicAlteration]]:
    """Make the changes of the plan; rows that failed in the plan stay as they are. Configs come first: they can be reset."""
    changes = {id(row): _as_change(row) for row in plan if row.setting != PARTITIONS}
    changed = yield from change_configs(cluster, list(changes.values()))
    outcome = dict(zip(changes, map(_as_row, changed), strict=True))
    failed = {row.topic for row in outcome.values() if row.error}
    rows = [
        replace(row, status="skipped")
        if row.topic in failed and row.status == PLANNED and row.setting == PARTITIONS
        else row
        for row in (outcome.get(id(row), row) for row in plan)
    ]
    added = iter((yield from _add_partitions(cluster, [r for r in rows if r.setting == PARTITIONS], only_check=False)))
    return [next(added) if row.setting == PARTITIONS else row for row in rows]


def _planned_partitions(topic: str, present: int, wanted: int) -> TopicAlteration:
    row = TopicAlteration(topic, PARTITIONS, str(present), str(wanted))
    if wanted < present:
        error = Precondition(f"topic {topic!r} has {present} partitions: Kafka cannot take partitions away")
        return replace(row, status=FAILED, error=error.as_row())
    return replace(row, status="same") if wanted == present else row


def _add_partitions(
    cluster: Cluster, plan: Sequence[TopicAlteration], *, only_check: bool
) -> Steps[list[TopicAlteration]]:
    wanted = {row.topic: int(row.new_value or 0) for row in plan if row.status == PLANNED and not row.error}
    if not wanted:
        return list(plan)

    def make(node: Node, names: list[str]) -> list[Batch[str]]:
        rows = [CreatePartitionsRequest.Topic(name=name, count=wanted[name]) for name in names]
        request = CreatePartitionsRequest(topics=rows, timeout_ms=SERVER_WAIT_MS, validate_only=only_check)
        return [Batch(Ask(node.endpoint, request, CreatePartitionsResponse), names, _read)]

    def repeated(_: str, result: KgctlError | None) -> KgctlError | None:
        already = isinstance(result, BrokerError) and result.code == ErrorCode.INVALID_PARTITIONS
        return None if already else result

    try:
        found = yield from cluster.at_controller(wanted, make, None if only_check else repeated)
    except ReadOnly:
        if not only_check:
            raise
        return list(plan)
    if only_check:
        found = {name: None if isinstance(error, ReadOnly) else error for name, error in found.items()}
    return [_outcome(row, found[row.topic], only_check) if row.topic in wanted else row for row in plan]


def _outcome(row: TopicAlteration, error: KgctlError | None, only_check: bool) -> TopicAlteration:
    if error is not None:
        return replace(row, status=FAILED, error=error.as_row())
    return row if only_check else replace(row, status=DONE)


def _read(answer: CreatePartitionsResponse) -> dict[str, KgctlError | None]:
    return {
        row.name: BrokerError(
            row.error_code,
            f"topic {row.name!r}",
            row.error_message,
            asked=Asked(CreatePartitionsRequest, topic=row.name),
        )
        if row.error_code
        else None
        for row in answer.results
    }


def _as_row(change: ConfigChange) -> TopicAlteration:
    return TopicAlteration(
        change.resource, change.config, change.old_value, change.new_value, change.status, change.error
    )


def _as_change(row: TopicAlteration) -> ConfigChange:
    return ConfigChange(TOPIC, row.topic, row.setting, row.old_value, row.new_value, False, row.status, row.error)
