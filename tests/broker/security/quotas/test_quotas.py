"""Which quota applies to a client, and what the quotas of all entities are."""

from __future__ import annotations

import itertools
import math
import tracemalloc
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.security.quotas.entities import (
    CLIENT_ID,
    CONNECTION,
    FETCH,
    IP,
    MUTATION,
    PRODUCE,
    REQUEST,
    USER,
    Entity,
    Filter,
    QuotaRefused,
    entity_of,
)
from broker.security.quotas.quotas import MOST_USES, Change, ClientQuotas
from broker.security.quotas.rates import Windows

WINDOWS = Windows(11, 1000)
# Kafka's order of precedence for the client "app" of the user "alice".
LEVELS: list[Entity] = [
    ((CLIENT_ID, "app"), (USER, "alice")),
    ((CLIENT_ID, None), (USER, "alice")),
    ((USER, "alice"),),
    ((CLIENT_ID, "app"), (USER, None)),
    ((CLIENT_ID, None), (USER, None)),
    ((USER, None),),
    ((CLIENT_ID, "app"),),
    ((CLIENT_ID, None),),
]
names = st.one_of(st.none(), st.sampled_from(["alice", "bob", "<default>", "ä"]))
entities = st.one_of(
    st.builds(lambda user, client: ((CLIENT_ID, client), (USER, user)), names, names),
    st.builds(lambda user: ((USER, user),), names),
    st.builds(lambda client: ((CLIENT_ID, client),), names),
)
values = st.one_of(st.none(), st.integers(1, 10**15).map(float))
changes = st.lists(
    st.builds(
        lambda entity, found: Change(entity, list(found.items())),
        entities,
        st.dictionaries(st.sampled_from([PRODUCE, FETCH, REQUEST, MUTATION]), values, max_size=3),
    ),
    max_size=12,
)


def quotas(*made: Change) -> ClientQuotas:
    found = ClientQuotas(WINDOWS, WINDOWS)
    for change in made:
        alter(found, change)
    return found


def alter(found: ClientQuotas, *made: Change, check: bool = False) -> list[str | None]:
    outcomes = found.alter(made, lambda host: host != "nowhere", check=check)
    return [str(outcome.refusal) if outcome.refusal else None for outcome in outcomes]


def everything(found: ClientQuotas) -> dict[Entity, dict[str, float]]:
    return {entity: dict(values) for entity, values in found.describe(Filter([], strict=False))}


def test_the_most_specific_quota_applies() -> None:
    for present in itertools.product([False, True], repeat=8):
        made = [Change(entity, [(PRODUCE, level + 1.0)]) for level, entity in enumerate(LEVELS) if present[level]]
        found = quotas(*made)
        expected = present.index(True) + 1.0 if any(present) else math.inf
        assert found.limit(PRODUCE, "alice", "app") == expected, present
        # Another client has the quotas of the defaults, and another key has none.
        others = [level for level in (4, 5, 7) if present[level]]
        assert found.limit(PRODUCE, "bob", "other") == (others[0] + 1.0 if others else math.inf), present
        assert found.limit(FETCH, "alice", "app") == math.inf, present


def test_a_client_without_an_id_has_the_quotas_of_its_user() -> None:
    made = [Change(entity, [(PRODUCE, level + 1.0)]) for level, entity in enumerate(LEVELS)]
    assert quotas(*made).limit(PRODUCE, "alice", "") == 3
    assert quotas(*made).limit(PRODUCE, "bob", "") == 6
    assert quotas(made[7]).limit(PRODUCE, "alice", "") == math.inf


@pytest.mark.parametrize(
    ("entity", "alike", "apart"),
    [
        (((USER, "alice"),), ("alice", "other"), ("bob", "app")),
        (((USER, None),), ("alice", "other"), ("bob", "app")),
        (((CLIENT_ID, "app"),), ("bob", "app"), ("alice", "other")),
        (((CLIENT_ID, None),), ("bob", "app"), ("alice", "other")),
        (((CLIENT_ID, None), (USER, "alice")), ("alice", "app"), ("alice", "other")),
        (((CLIENT_ID, None), (USER, None)), ("alice", "app"), ("bob", "app")),
    ],
)
def test_clients_share_a_quota_by_what_it_is_for(
    entity: Entity, alike: tuple[str, str], apart: tuple[str, str]
) -> None:
    found = quotas(Change(entity, [(PRODUCE, 1000.0)]))
    assert found.record(PRODUCE, "alice", "app", 10_000, 0) == 0
    assert found.record(PRODUCE, *alike, 1000, 0) == 1000
    assert found.record(PRODUCE, *apart, 10_000, 0) == 0


def test_a_fetch_that_is_taken_back_is_free() -> None:
    found = quotas(Change(((USER, "alice"),), [(FETCH, 1000.0)]))
    assert found.most_at_once(FETCH, "alice", "app") == 10_000
    for _ in range(5):
        assert found.record(FETCH, "alice", "app", 50_000, 0) == 40_000
        found.take_back(FETCH, "alice", "app", 50_000, 0)
    assert found.record(FETCH, "alice", "app", 10_000, 0) == 0


def test_the_time_of_requests_throttles_for_one_window_at_most() -> None:
    found = quotas(Change(((USER, "alice"),), [(REQUEST, 0.001), (PRODUCE, 1.0)]))
    assert found.record(REQUEST, "alice", "app", 50, 0) == WINDOWS.each_ms
    assert found.record(PRODUCE, "alice", "app", 50_000, 0) > WINDOWS.each_ms


def test_mutations_are_refused_or_throttled_by_version() -> None:
    found = quotas(Change(((USER, "alice"),), [(MUTATION, 1.0)]))
    assert found.record_mutations("alice", "app", 21, 0, strict=True) == 0
    assert found.record_mutations("alice", "app", 1, 0, strict=True) == 10_000
    assert found.record_mutations("alice", "app", 5, 0, strict=False) == 15_000
    assert found.record_mutations("alice", "app", 1, 15_000, strict=True) == 0
    assert found.record_mutations("bob", "app", 1000, 0, strict=True) == 0


def test_a_new_limit_applies_to_what_was_used_before() -> None:
    found = quotas(Change(((USER, "alice"),), [(PRODUCE, 1e9)]))
    assert found.record(PRODUCE, "alice", "app", 20_000, 0) == 0
    alter(found, Change(((USER, "alice"),), [(PRODUCE, 1000.0)]))
    assert found.record(PRODUCE, "alice", "app", 0, 0) == 10_000
    alter(found, Change(((USER, "alice"),), [(PRODUCE, None)]))
    assert found.record(PRODUCE, "alice", "app", 20_000, 0) == 0


def test_a_quota_that_is_not_a_number_limits_nothing() -> None:
    found = quotas(Change(((USER, "alice"),), [(PRODUCE, math.nan)]))
    assert found.record(PRODUCE, "alice", "app", 1e12, 0) == 0


@given(changes)
def test_quotas_are_what_the_changes_made_them_and_survive_the_store(made: list[Change]) -> None:
    found, model = ClientQuotas(WINDOWS, WINDOWS), dict[Entity, dict[str, float]]()
    stored: dict[str, str] = {}
    for change in made:
        assert alter(found, change, check=True) == [None]
        assert alter(found, change) == [None]
        model.setdefault(change.entity, {}).update({key: value for key, value in change.values if value is not None})
        for key, value in change.values:
            if value is None:
                model[change.entity].pop(key, None)
        name, text = found.encoded(change.entity)
        stored.pop(name, None)
        if text is not None:
            stored[name] = text
    model = {entity: kept for entity, kept in model.items() if kept}
    assert everything(found) == model
    loaded = ClientQuotas(WINDOWS, WINDOWS)
    loaded.load(stored)
    assert everything(loaded) == model
    assert loaded.keys == found.keys == {key for kept in model.values() for key in kept}


def test_an_invalid_change_changes_nothing() -> None:
    found = quotas(Change(((USER, "alice"),), [(PRODUCE, 1.0)]))
    before = everything(found)
    for entity, key, value in (
        ((), PRODUCE, 1.0),
        (((USER, ""),), PRODUCE, 1.0),
        ((("planet", "earth"),), PRODUCE, 1.0),
        (((IP, "nowhere"),), CONNECTION, 1.0),
        (entity_of([(IP, "10.0.0.1"), (USER, "alice")]), CONNECTION, 1.0),
        (((IP, "10.0.0.1"),), PRODUCE, 1.0),
        (((USER, "alice"),), CONNECTION, 1.0),
        (((USER, "alice"),), PRODUCE, 0.0),
        (((USER, "alice"),), PRODUCE, 0.5),
        (((USER, "alice"),), PRODUCE, 2.0**63),
        (((IP, None),), CONNECTION, 2.0**31),
    ):
        assert alter(found, Change(entity, [(FETCH, None), (key, value)])) != [None], (entity, key, value)
    assert alter(found, Change(((USER, "alice"),), [(PRODUCE, 1.0), (PRODUCE, 2.0)])) != [None]
    assert everything(found) == before


def test_a_filter_selects_by_name_default_and_type() -> None:
    found = quotas(*(Change(entity, [(PRODUCE, 1.0)]) for entity in LEVELS))

    def described(*components: tuple[str, int, str | None], strict: bool = False) -> Iterable[int]:
        return sorted(LEVELS.index(entity) for entity, _ in found.describe(Filter(components, strict=strict)))

    assert described() == list(range(8))
    assert described(strict=True) == []
    assert described((USER, 0, "alice")) == [0, 1, 2]
    assert described((USER, 0, "alice"), strict=True) == [2]
    assert described((USER, 1, None)) == [3, 4, 5]
    assert described((USER, 2, None), (CLIENT_ID, 1, None), strict=True) == [1, 4]
    for wrong in [("", 2, None)], [("x", 2, None)], [(USER, 0, None)], [(USER, 1, "a")], [(USER, 9, None)]:
        with pytest.raises(QuotaRefused):
            described(*wrong)
    with pytest.raises(QuotaRefused):
        described((USER, 2, None), (USER, 0, "a"))
    with pytest.raises(QuotaRefused):
        described((USER, 2, None), (IP, 2, None))


def test_clients_that_used_something_long_ago_are_forgotten() -> None:
    found = quotas(Change(((CLIENT_ID, None),), [(PRODUCE, 1000.0)]))
    for number in range(30_000):
        found.record(PRODUCE, "alice", f"client-{number}", 1, number * 10.0)
    assert found.remembered < 3000
    # Also if they all come at once.
    for number in range(MOST_USES + 10_000):
        found.record(PRODUCE, "alice", f"sudden-{number}", 1, 400_000)
    assert found.remembered <= MOST_USES


def test_connections_are_limited_by_address() -> None:
    found = quotas(Change(((IP, None),), [(CONNECTION, 1.0)]), Change(((IP, "10.0.0.1"),), [(CONNECTION, 2.0)]))

    def connected(address: str, now_ms: float) -> int:
        return sum(found.record_connection(address, now_ms) == 0 for _ in range(50))

    assert [connected(address, 0) for address in ("10.0.0.1", "10.0.0.2", "10.0.0.3")] == [20, 10, 10]
    assert connected("10.0.0.1", 20_000) == 20
    assert quotas().record_connection("10.0.0.1", 0) == 0
    local = quotas(Change(((IP, "localhost"),), [(CONNECTION, 1.0)]))
    assert sum(local.record_connection("127.0.0.1", 0) == 0 for _ in range(50)) == 10


def test_long_client_ids_take_no_memory_and_have_quotas_of_their_own() -> None:
    found = quotas(Change(((CLIENT_ID, None),), [(PRODUCE, 1.0)]))
    tracemalloc.start()
    try:
        for number in range(100):
            assert found.record(PRODUCE, "alice", str(number) + "x" * 32_000, 1000, 0) > 0
        assert tracemalloc.get_traced_memory()[0] < 1_000_000
    finally:
        tracemalloc.stop()
    assert found.remembered == 100
