"""Quotas of users, clients and IP addresses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest

from broker.protocol.messages.alter_client_quotas import AlterClientQuotasRequest, AlterClientQuotasResponse
from broker.protocol.messages.describe_client_quotas import DescribeClientQuotasRequest, DescribeClientQuotasResponse
from broker.security.sasl import scram
from kgctl.client.net.errors import BrokerError
from kgctl.compat.configs.options import CLIENTS, IPS, USERS, Entity
from kgctl.compat.hash_order import hash_of_map, in_hash_order
from kgctl.compat.java_errors import no_such_config, of_code
from kgctl.compat.java_numbers import parse_double, show_double
from kgctl.compat.options import UsageError
from kgctl.compat.tool import Session
from kgctl.journal.items import key_of, quotas_changed
from kgctl.journal.results import Outcome
from kgctl.model.quotas import DEFAULT, QuotaChange

_TYPES = {USERS: "user", CLIENTS: "client-id", IPS: "ip"}
_SHOWN = {"user": "user-principal", "client-id": "client-id", "ip": "ip"}
_OF_CLIENTS = ("producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate")
_OF_IPS = ("connection_creation_rate",)
_EXACT, _DEFAULT, _ANY = range(3)
# The parts of an entity and their names, in the order of types.
Parts = tuple[tuple[str, str | None], ...]


def describe_quotas(session: Session, entity: Entity) -> None:
    found = _existing(session, entity)

    def hash_of(parts: Parts) -> int:
        return 31 + hash_of_map(dict(parts))

    for parts in in_hash_order(found, sized=True, hash_of=hash_of):
        names = dict(parts)
        shown = ", ".join(
            f"the default {text}" if names[kind] is None else f"{text} '{names[kind]}'"
            for kind, text in _SHOWN.items()
            if kind in names
        )
        values = found[parts]
        quotas = ", ".join(f"{name}={show_double(values[name])}" for name in in_hash_order(values, sized=True))
        session.out(f"Quota configs for {shown} are {quotas}\n")


def _existing(session: Session, entity: Entity) -> dict[Parts, dict[str, float]]:
    """Quotas of exactly the types of the entity."""
    if len(entity.names) > len(entity.kinds):
        raise UsageError("More entity names specified than entity types")
    components = [
        DescribeClientQuotasRequest.Component(
            entity_type=_TYPES[kind],
            match_type=_ANY if name is None else _EXACT if name else _DEFAULT,
            match=name or None,
        )
        for kind, name in zip_longest(entity.kinds, entity.names)
    ]
    request = DescribeClientQuotasRequest(components=components, strict=True)
    asked = session.admin.cluster.ask_any(request, DescribeClientQuotasResponse)
    answer = session.run(asked, "describeClientQuotas")
    if answer.error_code:
        raise of_code(answer.error_code, answer.error_message).within()
    return {
        tuple((part.entity_type, part.entity_name) for part in entry.entity): {
            one.key: one.value for one in entry.values
        }
        for entry in answer.entries or ()
    }


# --- alter ---


def are_quotas(entity: Entity, values: Mapping[str, str], removed: Sequence[str]) -> bool:
    """Whether quotas are changed rather than SCRAM credentials. Raises UsageError if the names fit neither."""
    if entity.kind == IPS:
        unknown = [name for name in (*values, *removed) if name not in _OF_IPS]
        if unknown:
            _refuse("Only connection quota configs can be added", IPS, ",".join(unknown))
        return True
    is_user = entity.kinds == (USERS,)
    allowed = (*_OF_CLIENTS, *scram.TYPES) if is_user else _OF_CLIENTS
    kind, what = (USERS, "quota and SCRAM credential") if is_user else (CLIENTS, "quota")
    for names, verb, collection in ((values, "added", "Set"), (removed, "deleted", "List")):
        unknown = [name for name in names if name not in allowed]
        if unknown:
            _refuse(f"Only {what} configs can be {verb}", kind, f"{collection}({', '.join(unknown)})")
    are_mixed = {name in scram.TYPES for name in (*values, *removed)}
    if True in are_mixed and "" in entity.names:
        raise UsageError(
            "The use of --entity-default or --user-defaults is not allowed with User SCRAM Credentials using "
            "--bootstrap-server."
        )
    if len(are_mixed) > 1:
        raise UsageError(
            f"Cannot alter both quota and SCRAM credential configs simultaneously for '{USERS}' using "
            "--bootstrap-server."
        )
    return False in are_mixed


def _refuse(what: str, kind: str, names: str) -> None:
    raise UsageError(f"{what} for '{kind}' using --bootstrap-server. Unexpected config names: {names}")


def alter_quotas(session: Session, entity: Entity, values: Mapping[str, str], removed: Sequence[str]) -> None:
    """Raises JavaError, UsageError."""
    found = _existing(session, entity)
    known = next(iter(found.values()), {})
    missing = [name for name in removed if name not in known]
    if missing:
        raise no_such_config(f"Invalid config(s): {','.join(missing)}")
    op = AlterClientQuotasRequest.Op
    ops = [op(key=name, value=_number(name, text), remove=False) for name, text in values.items()]
    ops += [op(key=name, value=0.0, remove=True) for name in removed]
    parts = [
        AlterClientQuotasRequest.Entity(entity_type=_TYPES[kind], entity_name=name or None)
        for kind, name in zip(entity.kinds, entity.names, strict=True)
    ]
    session.host.may_change(_named(entity.names))
    entry = AlterClientQuotasRequest.Entry(entity=parts, ops=ops)
    request = AlterClientQuotasRequest(entries=[entry], validate_only=False)
    rows = _rows(entity, known, {op.key: None if op.remove else op.value for op in ops})
    answer = session.change(
        "quotas set" if values else "quotas remove",
        lambda: quotas_changed(rows),
        lambda: session.run(session.admin.cluster.ask_any(request, AlterClientQuotasResponse), "alterClientQuotas"),
        lambda answer: _outcomes(rows, answer),
        "alterClientQuotas",
    )
    for row in answer.entries:
        if row.error_code:
            raise of_code(row.error_code, row.error_message).within()


def _rows(entity: Entity, known: Mapping[str, float], wanted: Mapping[str, float | None]) -> list[QuotaChange]:
    parts = dict(zip(entity.kinds, entity.names, strict=True))
    user, client, ip = (name or DEFAULT if (name := parts.get(kind)) is not None else None for kind in _TYPES)
    return [QuotaChange(user, client, ip, name, known.get(name), value) for name, value in wanted.items()]


def _outcomes(rows: Sequence[QuotaChange], answer: AlterClientQuotasResponse) -> list[Outcome]:
    (entry,) = answer.entries
    error = BrokerError(entry.error_code, "quotas", entry.error_message) if entry.error_code else None
    return [Outcome.of(key_of(row), error) for row in rows]


def _number(name: str, text: str) -> float:
    try:
        return parse_double(text)
    except ValueError:
        raise UsageError(f"Cannot parse quota configuration value for {name}: {text}") from None


def _named(names: Iterable[str]) -> list[str]:
    return [name for name in names if name]
