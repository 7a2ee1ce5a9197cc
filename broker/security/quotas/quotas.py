"""ClientQuotas: the quotas of all entities, which of them applies to a client, and how much each client has used.

As in Kafka's ClientQuotaManager, the most specific quota applies. Clients to which the same entity applies share what it allows
only if it names what they have in common: all connections of one user, of one client id, or of one user with one client id.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any, TypeVar

from broker.light_named_tuples import NamedTuple
from broker.security.quotas.entities import (
    CLIENT_ID,
    CONNECTION,
    IP,
    MUTATION,
    REQUEST,
    USER,
    Entity,
    Filter,
    QuotaRefused,
    check_entity,
    check_value,
    decode_entity,
    decode_values,
    encode_entity,
    encode_values,
    entity_of,
    spell,
)
from broker.security.quotas.rates import Rate, TokenBucket, Windows

# How many clients may have used something before those that no longer count are forgotten.
FEW_USES = 1000
# The most clients whose use is remembered; above it, those that used theirs longest ago start afresh.
MOST_USES = 50_000
# Longer names are remembered by their hash: clients choose their client ids, of up to 32 KiB.
LONGEST_NAME = 256

LOOPBACK = ("127.0.0.1", "::1", "0:0:0:0:0:0:0:1")


class Change(NamedTuple):
    """New quotas of an entity as (key, value); the value None removes one."""

    entity: Entity
    values: Sequence[tuple[str, float | None]]


class Outcome(NamedTuple):
    """Whether a change was made, and why not."""

    entity: Entity
    refusal: QuotaRefused | None


class _Limit(NamedTuple):
    """What applies to one client: the limit, and under which name its use counts."""

    value: float
    user: str
    client_id: str


Use = TypeVar("Use", Rate, TokenBucket)
_Asked = tuple[str, str, str]  # key, user, client id


class ClientQuotas:
    """All quotas. `keys` are those that any client has."""

    def __init__(self, windows: Windows, mutation_windows: Windows) -> None:
        self._windows, self._mutation_windows = windows, mutation_windows
        self._quotas: dict[Entity, dict[str, float]] = {}
        self._limits: dict[_Asked, _Limit | None] = {}
        self._uses: dict[_Asked, Any] = {}
        self._forget_at = FEW_USES
        self.keys: frozenset[str] = frozenset()

    @property
    def remembered(self) -> int:
        """How many clients have used something lately."""
        return len(self._uses)

    def load(self, stored: Mapping[str, str]) -> None:
        """Take the quotas from the store: values by entity, as `encoded` returns them."""
        self._quotas = {decode_entity(name): decode_values(text) for name, text in stored.items()}
        self._changed()

    def encoded(self, entity: Entity) -> tuple[str, str | None]:
        """The name and the text under which an entity is stored; no text if it has no quotas."""
        values = self._quotas.get(entity)
        return encode_entity(entity), encode_values(values) if values else None

    def alter(self, changes: Iterable[Change], is_address: Callable[[str], bool], *, check: bool) -> list[Outcome]:
        """Make all changes that are valid; none if `check`. One outcome per entity, as Kafka answers."""
        outcomes: dict[Entity, QuotaRefused | None] = {}
        for entity, values in changes:
            try:
                # The first change of an entity is made nevertheless.
                if entity in outcomes or len(dict(values)) < len(values):
                    raise QuotaRefused(f"Ignoring duplicate entity {spell(entity)}")
                allowed = check_entity(entity, is_address)
                for key, value in values:
                    if value is not None:
                        check_value(key, value, allowed)
                if not check:
                    self._alter(entity, dict(values))
                outcomes[entity] = None
            except QuotaRefused as refused:
                outcomes[entity] = refused
        self._changed()
        return [Outcome(entity, refusal) for entity, refusal in outcomes.items()]

    def describe(self, wanted: Filter) -> list[tuple[Entity, Mapping[str, float]]]:
        return [(entity, values) for entity, values in self._quotas.items() if wanted.matches(entity)]

    def limit(self, key: str, user: str, client_id: str) -> float:
        """The quota that applies to a client, or infinity."""
        found = self._find(key, user, client_id)
        return math.inf if found is None else found.value

    def most_at_once(self, key: str, user: str, client_id: str) -> float:
        """What a client may use at once if it has used nothing lately."""
        return self.limit(key, user, client_id) * (self._windows.samples - 1) * self._windows.each_ms / 1000

    def record(self, key: str, user: str, client_id: str, value: float, now_ms: float) -> int:
        """Record what a client used. Return for how many milliseconds it is to be throttled."""
        found = self._find(key, user, client_id)
        if found is None:
            return 0
        rate = self._use(Rate, key, found, now_ms)
        rate.record(value, now_ms, self._windows)
        throttle_ms = rate.throttle_ms(found.value, now_ms, self._windows)
        # The time of requests is measured in percent of one thread, which passes whatever is throttled.
        return min(throttle_ms, self._windows.each_ms) if key == REQUEST else throttle_ms

    def take_back(self, key: str, user: str, client_id: str, value: float, now_ms: float) -> None:
        """Undo `record`: the client did not get what it asked for."""
        found = self._find(key, user, client_id)
        if found is not None:
            self._use(Rate, key, found, now_ms).record(-value, now_ms, self._windows)

    def record_mutations(self, user: str, client_id: str, count: int, now_ms: float, *, strict: bool) -> int:
        """Record created or deleted partitions. Return the throttle time; if `strict` and it is not 0, they are not allowed.

        A strict quota allows any number as long as it is not exhausted (KIP-599).
        """
        found = self._find(MUTATION, user, client_id)
        if found is None:
            return 0
        bucket = self._use(TokenBucket, MUTATION, found, now_ms)
        windows, limit = self._mutation_windows, found.value
        if strict:
            throttle_ms = bucket.throttle_ms(limit, now_ms, windows)
            if not throttle_ms:
                bucket.record(count, limit, now_ms, windows)
            return throttle_ms
        bucket.record(count, limit, now_ms, windows)
        return bucket.throttle_ms(limit, now_ms, windows)

    def record_connection(self, address: str, now_ms: float) -> int:
        """Record a connection of an IP address. Return the throttle time; if it is not 0, the connection does not count."""
        found = self._address_limit(address)
        if found is None:
            return 0
        rate = self._use(Rate, CONNECTION, found, now_ms)
        rate.record(1, now_ms, self._windows)
        throttle_ms = rate.throttle_ms(found.value, now_ms, self._windows)
        if throttle_ms:
            rate.record(-1, now_ms, self._windows)
        return throttle_ms

    def _address_limit(self, address: str) -> _Limit | None:
        for name in (address, "localhost" if address in LOOPBACK else address, None):
            value = self._quotas.get(((IP, name),), {}).get(CONNECTION)
            if value is not None:
                return _Limit(value, address, "")
        return None

    def _alter(self, entity: Entity, values: Mapping[str, float | None]) -> None:
        quotas = {**self._quotas.get(entity, {}), **values}
        present = {key: value for key, value in quotas.items() if value is not None}
        if present:
            self._quotas[entity] = present
        else:
            self._quotas.pop(entity, None)

    def _changed(self) -> None:
        self._limits.clear()
        self.keys = frozenset(key for values in self._quotas.values() for key in values)

    def _find(self, key: str, user: str, client_id: str) -> _Limit | None:
        if len(user) + len(client_id) > LONGEST_NAME:
            return self._most_specific(key, user, client_id)
        asked = key, user, client_id
        try:
            return self._limits[asked]
        except KeyError:
            if len(self._limits) >= MOST_USES:
                self._limits.clear()
            found = self._limits[asked] = self._most_specific(key, user, client_id)
            return found

    def _most_specific(self, key: str, user: str, client_id: str) -> _Limit | None:
        for entity, counts_for_user, counts_for_client in _precedence(user, client_id):
            value = self._quotas.get(entity, {}).get(key)
            if value is not None:
                # NaN limits nothing.
                shared = _short(user) if counts_for_user else "", _short(client_id) if counts_for_client else ""
                return _Limit(value, *shared) if value == value else None
        return None

    def _use(self, kind: Callable[[float], Use], key: str, found: _Limit, now_ms: float) -> Use:
        name = key, found.user, found.client_id
        use: Use | None = self._uses.get(name)
        if use is None:
            if len(self._uses) >= self._forget_at:
                self._forget(now_ms)
            use = self._uses[name] = kind(now_ms)
        return use

    def _forget(self, now_ms: float) -> None:
        """Forget the use of clients that is too long ago to count."""
        longest_ms = max(self._windows.total_ms, self._mutation_windows.total_ms)
        self._uses = {name: use for name, use in self._uses.items() if now_ms - use.used_ms < longest_ms}
        if len(self._uses) >= MOST_USES:
            newest = sorted(self._uses.items(), key=lambda item: item[1].used_ms)[MOST_USES // 2 :]
            self._uses = dict(newest)
        self._forget_at = max(FEW_USES, min(2 * len(self._uses), MOST_USES))


def _precedence(user: str, client_id: str) -> Iterator[tuple[Entity, bool, bool]]:
    """The entities that apply to a client, the most specific first, and whether use counts per user and per client id.

    A client without an id has none of the quotas that depend on it, as in Kafka.
    """
    for of_user in (user, None):
        if client_id:
            yield entity_of([(USER, of_user), (CLIENT_ID, client_id)]), True, True
            yield entity_of([(USER, of_user), (CLIENT_ID, None)]), True, True
        yield ((USER, of_user),), True, False
    if client_id:
        yield ((CLIENT_ID, client_id),), False, True
        yield ((CLIENT_ID, None),), False, True


def _short(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else sha256(name.encode(errors="surrogatepass")).hexdigest()
