"""Entities: the users, client ids and IP addresses that quotas are set for, and the quotas that each may have."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping

from broker.light_named_tuples import NamedTuple
from broker.protocol.errors import ErrorCode

USER, CLIENT_ID, IP = "user", "client-id", "ip"
# In the order in which Kafka answers them.
TYPES = (CLIENT_ID, USER, IP)

PRODUCE, FETCH, REQUEST = "producer_byte_rate", "consumer_byte_rate", "request_percentage"
MUTATION, CONNECTION = "controller_mutation_rate", "connection_creation_rate"

EXACT, DEFAULT, SPECIFIED = range(3)
_EPSILON = 1e-6
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=True)


class QuotaRefused(Exception):
    """A change or a filter is not valid; the text is Kafka's."""

    def __init__(self, message: str, code: ErrorCode = ErrorCode.INVALID_REQUEST) -> None:
        super().__init__(message)
        self.code = code


# The parts of an entity as (type, name), in the order of TYPES. The name None is the default of the type.
Entity = tuple[tuple[str, str | None], ...]


class _Kind(NamedTuple):
    """The type of a quota's value: whole numbers up to `most`, or any number."""

    name: str
    most: float | None


_LONG, _INT, _DOUBLE = _Kind("LONG", 2**63), _Kind("INT", 2**31), _Kind("DOUBLE", None)
_OF_CLIENTS = {PRODUCE: _LONG, FETCH: _LONG, REQUEST: _DOUBLE, MUTATION: _DOUBLE}
_OF_ADDRESSES = {CONNECTION: _INT}


def entity_of(parts: Iterable[tuple[str, str | None]]) -> Entity:
    """The entity of these parts; of two with the same type the last counts."""
    named = dict(parts)
    known = [(kind, named.pop(kind)) for kind in TYPES if kind in named]
    return (*known, *named.items())


def check_entity(entity: Entity, is_address: Callable[[str], bool]) -> Mapping[str, _Kind]:
    """Return the quotas that the entity may have. Raises QuotaRefused if there is no such entity."""
    if not entity:
        raise QuotaRefused("Invalid empty client quota entity")
    for kind, name in entity:
        if kind not in TYPES:
            raise QuotaRefused(f"Unhandled client quota entity type: {kind}")
        if name == "":
            raise QuotaRefused(f"Empty {kind} not supported")
    named = dict(entity)
    if IP not in named:
        return _OF_CLIENTS
    if len(named) > 1:
        raise QuotaRefused("Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId")
    address = named[IP]
    if address is not None and not is_address(address):
        raise QuotaRefused(f"{address} is not a valid IP or resolvable host.")
    return _OF_ADDRESSES


def check_value(key: str, value: float, allowed: Mapping[str, _Kind]) -> None:
    """Raise QuotaRefused if the value is not one of this quota. NaN is one, as in Kafka; it limits nothing."""
    kind = allowed.get(key)
    if kind is None:
        raise QuotaRefused(f"Invalid configuration key {key}")
    if value <= 0:
        raise QuotaRefused(f"Quota {key} must be greater than 0")
    if kind.most is not None:
        if value >= kind.most:
            raise QuotaRefused(
                f"Proposed value for {key} is too large for {'an' if kind is _INT else 'a'} {kind.name}."
            )
        if value == value and abs(int(value + _EPSILON) - value) > _EPSILON:
            raise QuotaRefused(f"{key} cannot be a fractional value.")


def spell(entity: Entity) -> str:
    """The entity as Kafka's messages show it."""
    parts = ", ".join(f"{kind}={'null' if name is None else name}" for kind, name in entity)
    return f"ClientQuotaEntity(entries={{{parts}}})"


def encode_entity(entity: Entity) -> str:
    """JSON that is equal for equal entities."""
    return _ENCODER.encode(dict(entity))


def encode_values(values: Mapping[str, float]) -> str:
    return _ENCODER.encode(values)


def decode_entity(text: str) -> Entity:
    return entity_of(json.loads(text).items())


def decode_values(text: str) -> dict[str, float]:
    return {key: float(value) for key, value in json.loads(text).items()}


class Filter:
    """Which entities DescribeClientQuotas asks for."""

    def __init__(self, components: Iterable[tuple[str, int, str | None]], *, strict: bool) -> None:
        """`components` are (type, match type, name). Raises QuotaRefused."""
        self._exact: dict[str, str | None] = {}
        self._any: set[str] = set()
        self._strict = strict
        for kind, match_type, name in components:
            self._add(kind, match_type, name)
        types = self._exact.keys() | self._any
        if IP in types and len(types) > 1:
            raise QuotaRefused(
                "Invalid entity filter component combination. IP filter component should not be used with user or "
                "clientId filter component."
            )

    def matches(self, entity: Entity) -> bool:
        named = dict(entity)
        asked = len(self._exact) + len(self._any)
        if self._strict and (not asked or len(named) != asked):
            return False
        exact = all(kind in named and named[kind] == name for kind, name in self._exact.items())
        return exact and self._any <= named.keys()

    def _add(self, kind: str, match_type: int, name: str | None) -> None:
        if not kind:
            raise QuotaRefused("Invalid empty entity type.")
        if kind in self._exact or kind in self._any:
            raise QuotaRefused(f"Entity type {kind} cannot appear more than once in the filter.")
        if kind not in TYPES:
            raise QuotaRefused(f"Unsupported entity type {kind}", ErrorCode.UNSUPPORTED_VERSION)
        if match_type == EXACT:
            if name is None:
                raise QuotaRefused("Request specified MATCH_TYPE_EXACT, but set match string to null.")
            self._exact[kind] = name
        elif match_type in (DEFAULT, SPECIFIED):
            if name is not None:
                spelled = "DEFAULT" if match_type == DEFAULT else "SPECIFIED"
                raise QuotaRefused(f"Request specified MATCH_TYPE_{spelled}, but also specified a match string.")
            if match_type == DEFAULT:
                self._exact[kind] = None
            else:
                self._any.add(kind)
        else:
            raise QuotaRefused(f"Unknown match type {match_type}")
