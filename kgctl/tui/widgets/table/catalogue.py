"""Columns that several tables share: each meaning has one title, one width and one format."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from broker.light_dataclasses import replace
from kgctl.tui import cells
from kgctl.tui.widgets.table.columns import Column, R

N = TypeVar("N", int, float)
TOPIC_WIDTH = 10


def consumer_id(of: Callable[[R], str | None], priority: int = 0) -> Column[R]:
    return Column("id", "CONSUMER-ID", lambda row: cells.name(of(row)), 18, flex=8, most=60, priority=priority)


def instance(of: Callable[[R], str | None], priority: int = 0) -> Column[R]:
    return Column("instance", "INSTANCE", lambda row: cells.name(of(row)), 8, flex=1, most=24, priority=priority)


def client_id(of: Callable[[R], str | None], priority: int = 0) -> Column[R]:
    return Column("client", "CLIENT-ID", lambda row: cells.name(of(row)), 9, flex=1, most=24, priority=priority)


def host(of: Callable[[R], str | None]) -> Column[R]:
    return Column("host", "HOST", lambda row: cells.name(of(row)), 10, flex=1, most=20)


def topic(of: Callable[[R], str]) -> Column[R]:
    return Column("topic", "TOPIC", lambda row: cells.name(of(row)), TOPIC_WIDTH, flex=3, most=40)


def partition(of: Callable[[R], int | None], order: Callable[[R], object] | None = None) -> Column[R]:
    return Column("partition", "PARTITION", lambda row: cells.count(of(row)), 10, right=True, order=order)


def generation(
    of: Callable[[R], int | None],
    *,
    priority: int = 0,
    from_room: int = 0,
    order: Callable[[R], object] | None = None,
    text: Callable[[R], str] | None = None,
) -> Column[R]:
    """`text` replaces the number, where there is more to say."""
    plain = text or (lambda row: cells.count(of(row)))
    return Column("generation", "GEN", plain, 6, right=True, order=order, priority=priority, from_room=from_room)


def rate(key: str, title: str, of: Callable[[R], float | None], priority: int = 0) -> Column[R]:
    """Records/s; the unit is in the title."""
    return number(key, title, of, lambda per_s: cells.rate(per_s).removesuffix("/s"), 6, priority)


def number(
    key: str,
    title: str,
    of: Callable[[R], N | None],
    text: Callable[[N | None], str],
    width: int,
    priority: int = 0,
    from_room: int = 0,
) -> Column[R]:
    """Sorts the largest first and unknown numbers last; zero and unknown are muted."""
    return Column(
        key,
        title,
        lambda row: text(of(row)),
        width,
        right=True,
        style=lambda row: "" if of(row) else "dim",
        order=of,
        falling=True,
        priority=priority,
        from_room=from_room,
    )


def change(
    key: str,
    title: str,
    of: Callable[[R], int | None],
    text: Callable[[int | None], str],
    is_wanted: Callable[[], bool],
) -> Column[R]:
    """By how much a number has changed since the moment that the user has set."""

    def signed(row: R) -> str:
        number = of(row)
        return ("+" if number is not None and number > 0 else "") + text(number)

    return replace(number(key, title, of, text, 9), text=signed, is_wanted=is_wanted)
