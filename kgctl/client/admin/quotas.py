"""Lists, sets and removes client quotas (KIP-546)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from broker.light_dataclasses import dataclass, replace
from broker.protocol.messages.alter_client_quotas import AlterClientQuotasRequest, AlterClientQuotasResponse
from broker.protocol.messages.describe_client_quotas import DescribeClientQuotasRequest, DescribeClientQuotasResponse
from broker.protocol.wire_types import Message
from kgctl.client.net.authorization import Asked
from kgctl.client.net.cluster import Ask, Batch, Cluster, Node
from kgctl.client.net.errors import BrokerError, KgctlError, NotFound
from kgctl.client.net.read_only import ReadOnly
from kgctl.client.net.steps import Steps
from kgctl.model.changes import DONE, FAILED, PLANNED
from kgctl.model.quotas import DEFAULT, QuotaChange, QuotaRow

USER, CLIENT_ID, IP = "user", "client-id", "ip"
_EXACT, _DEFAULT, _ANY = range(3)


@dataclass(frozen=True, slots=True)
class Entity:
    """What a quota limits: None is not part of it, "<default>" is Kafka's default of that type."""

    user: str | None = None
    client_id: str | None = None
    ip: str | None = None

    def __str__(self) -> str:
        named = [f"default {kind}" if name == DEFAULT else f"{kind} {name!r}" for kind, name in self.parts.items()]
        return ", ".join(named)

    @property
    def parts(self) -> dict[str, str]:
        each = {USER: self.user, CLIENT_ID: self.client_id, IP: self.ip}
        return {kind: name for kind, name in each.items() if name is not None}


def list_quotas(cluster: Cluster, entity: Entity, *, strict: bool = False) -> Steps[list[QuotaRow]]:
    """Quotas of entities that have these parts; `strict`: and no others. Without parts, all quotas."""
    components = [
        DescribeClientQuotasRequest.Component(
            entity_type=kind,
            match_type=_DEFAULT if name == DEFAULT else _EXACT,
            match=None if name == DEFAULT else name,
        )
        for kind, name in entity.parts.items()
    ]
    request = DescribeClientQuotasRequest(components=components, strict=strict)
    answer = yield from cluster.ask_any(request, DescribeClientQuotasResponse)
    error = _error("client quotas", answer.error_code, answer.error_message, DescribeClientQuotasRequest)
    if error is not None:
        raise error
    rows = []
    for entry in answer.entries or ():
        names = {part.entity_type: DEFAULT if part.entity_name is None else part.entity_name for part in entry.entity}
        parts = names.get(USER), names.get(CLIENT_ID), names.get(IP)
        rows += [QuotaRow(*parts, one.key, one.value) for one in entry.values]
    return sorted(rows, key=lambda row: (row.user or "", row.client_id or "", row.ip or "", row.quota))


def plan_quotas(cluster: Cluster, entity: Entity, values: Mapping[str, float]) -> Steps[list[QuotaChange]]:
    """The quotas to set. The cluster checks them without a change."""
    present = yield from _present(cluster, entity)
    plan = [
        _change(entity, name, present.get(name), value, "same" if present.get(name) == value else PLANNED)
        for name, value in values.items()
    ]
    return (yield from _checked(cluster, entity, plan))


def plan_quota_removal(cluster: Cluster, entity: Entity, names: Sequence[str]) -> Steps[list[QuotaChange]]:
    """The quotas to remove: these, or all of the entity. One that is not set is a row with its error."""
    present = yield from _present(cluster, entity)
    if not names and not present:
        return [replace(_change(entity, None, None, None, FAILED), error=NotFound(f"{entity} has no quota").as_row())]
    plan = []
    for name in names or sorted(present):
        row = _change(entity, name, present.get(name), None, PLANNED)
        if name not in present:
            row = replace(row, status=FAILED, error=NotFound(f"{entity} has no quota {name!r}").as_row())
        plan.append(row)
    return (yield from _checked(cluster, entity, plan))


def change_quotas(
    cluster: Cluster, entity: Entity, plan: Sequence[QuotaChange], *, only_check: bool = False
) -> Steps[list[QuotaChange]]:
    """Make the changes of the plan in one request; rows that failed in the plan stay as they are."""
    changes = [row for row in plan if row.status == PLANNED]
    if not changes:
        return list(plan)
    about = str(entity)
    entry = AlterClientQuotasRequest.Entry(
        entity=[
            AlterClientQuotasRequest.Entity(entity_type=kind, entity_name=None if name == DEFAULT else name)
            for kind, name in entity.parts.items()
        ],
        ops=[
            AlterClientQuotasRequest.Op(key=row.quota or "", value=row.new_value or 0.0, remove=row.new_value is None)
            for row in changes
        ],
    )
    request = AlterClientQuotasRequest(entries=[entry], validate_only=only_check)

    def read(answer: AlterClientQuotasResponse) -> dict[str, KgctlError | None]:
        (row,) = answer.entries
        return {about: _error(about, row.error_code, row.error_message, AlterClientQuotasRequest)}

    def make(node: Node, names: list[str]) -> list[Batch[str]]:
        return [Batch(Ask(node.endpoint, request, AlterClientQuotasResponse), names, read)]

    found = yield from cluster.at_controller([about], make)
    error = found[about]
    if isinstance(error, ReadOnly) and only_check:
        return list(plan)
    return [_outcome(row, error) if row.status == PLANNED else row for row in plan]


def _outcome(row: QuotaChange, error: KgctlError | None) -> QuotaChange:
    return replace(row, status=FAILED, error=error.as_row()) if error else replace(row, status=DONE)


def _checked(cluster: Cluster, entity: Entity, plan: Sequence[QuotaChange]) -> Steps[list[QuotaChange]]:
    try:
        checked = yield from change_quotas(cluster, entity, plan, only_check=True)
    except ReadOnly:
        return list(plan)
    return [replace(row, status=PLANNED) if row.status == DONE else row for row in checked]


def _present(cluster: Cluster, entity: Entity) -> Steps[dict[str, float]]:
    rows = yield from list_quotas(cluster, entity, strict=True)
    return {row.quota: row.value for row in rows}


def _change(entity: Entity, name: str | None, old: float | None, new: float | None, status: str) -> QuotaChange:
    return QuotaChange(entity.user, entity.client_id, entity.ip, name, old, new, status)


def _error(about: str, code: int, message: str | None, request: type[Message]) -> BrokerError | None:
    return BrokerError(code, about, message, asked=Asked(request)) if code else None
