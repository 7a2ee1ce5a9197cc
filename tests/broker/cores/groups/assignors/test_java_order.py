"""Keys in the order in which Java 17 and Kafka 4.1 iterate over them, as both have printed it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from broker.cores.groups.assignors.java_order import (
    MembersOrder,
    map_order,
    set_order,
    timeline_order,
)

KEYS = [f"member-{number * number % 97}-{number}" for number in range(30)] + ["é", "\U0001f600", ""]
# fmt: off
MAP = [4, 32, 22, 23, 12, 11, 3, 24, 2, 9, 0, 8, 1, 5, 7, 15, 18, 21, 30, 10, 28, 29, 14, 16, 25, 20, 19, 31, 13, 27, 26, 17, 6]
SET_OF_TWELVE = [4, 5, 7, 10, 11, 3, 2, 9, 0, 8, 1, 6]
TIMELINE = [32, 30, 22, 7, 23, 17, 1, 15, 9, 13, 19, 29, 21, 10, 5, 20, 25, 27, 2, 0, 28, 8, 26, 18, 3, 31, 16, 6, 12, 4, 11, 24, 14]
# fmt: on


def test_keys_have_the_order_of_javas_maps() -> None:
    assert [KEYS.index(key) for key in map_order(KEYS)] == MAP
    assert [KEYS.index(key) for key in set_order(KEYS[:12])] == SET_OF_TWELVE
    assert [KEYS.index(key) for key in timeline_order(KEYS)] == TIMELINE


@given(st.lists(st.integers(0, 40), max_size=80))
def test_members_that_come_and_go_have_the_order_of_all_that_are_there(moves: list[int]) -> None:
    order, there, most = MembersOrder(), dict[str, None](), 0
    for number in moves:
        key = f"member-{number}"
        if key in there:
            order.remove(key)
            del there[key]
        else:
            stay = [*timeline_order(there, most)]
            assert order.keys(joining=key) == map_order([*stay, key])
            for leaving in stay[:1]:
                assert order.keys(key, leaving) == map_order([*stay[1:], key])
            order.add(key)
            there[key] = None
        most = max(most, len(there))
        assert order.keys() == map_order(timeline_order(there, most))
