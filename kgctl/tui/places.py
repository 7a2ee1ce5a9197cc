"""The screens that `g` and a letter open from anywhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from textual.screen import Screen

from broker.light_dataclasses import dataclass
from kgctl.tui.screens.brokers import BrokersScreen
from kgctl.tui.screens.contexts import ContextsScreen
from kgctl.tui.screens.events import EventsScreen
from kgctl.tui.screens.records import RecordsScreen
from kgctl.tui.screens.topics import TopicsScreen
from kgctl.tui.screens.transactions import TransactionsScreen

PREFIX = "g"


@dataclass(frozen=True)
class Place:
    """A screen with its letter; `make` is None for the first screen, on which the others are stacked."""

    letter: str
    name: str
    make: Callable[[], Screen[Any]] | None = None


PLACES: tuple[Place, ...] = (
    Place("g", "Groups"),
    Place("t", "Topics", TopicsScreen),
    Place("e", "Events", EventsScreen),
    Place("b", "Brokers", BrokersScreen),
    Place("c", "Contexts", ContextsScreen),
    Place("x", "Transactions", TransactionsScreen),
    Place("r", "Records", RecordsScreen),
)


def place_of(letter: str | None) -> Place | None:
    return next((place for place in PLACES if place.letter == letter), None)
