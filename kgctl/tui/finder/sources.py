"""What the finder finds: screens, the actions of a screen, groups, topics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from textual.app import App
from textual.screen import Screen

from kgctl.model.watched import Snapshot
from kgctl.tui import cells
from kgctl.tui.finder.ranking import Source
from kgctl.tui.keys import Key, sections
from kgctl.tui.places import PLACES, PREFIX, Place
from kgctl.tui.widgets.frame.panel import Panel
from kgctl.watch.cluster import ClusterView
from kgctl.watch.figures import counted

SCREEN, ACTION, GROUP, TOPIC = "screen", "action", "group", "topic"
THIS = "find"


def screens(go_to: Callable[[Place], None]) -> Source:
    return Source.of(
        SCREEN,
        [place.name for place in PLACES],
        lambda at: go_to(PLACES[at]),
        lambda at: PREFIX + PLACES[at].letter,
    )


def actions(screen: Screen[Any], run: Callable[[Key], None]) -> Source:
    """The actions that are enabled now on this screen, its focused panel and the app, each with its keys."""
    keys = [
        key
        for section in sections(screen)
        for key in section.keys
        if key.is_enabled and isinstance(key.node, App | Screen | Panel) and key.action != THIS
    ]
    return Source.of(
        ACTION, [key.description for key in keys], lambda at: run(keys[at]), lambda at: " ".join(keys[at].keys)
    )


def groups(view: ClusterView | None, open_group: Callable[[str], None]) -> Source:
    rows = view.rows if view is not None else ()

    def note(at: int) -> str:
        health = rows[at].health
        return health.value.lower() if health else "judging"

    return Source.of(GROUP, [cells.name(row.group) for row in rows], lambda at: open_group(rows[at].group), note)


def topics(view: ClusterView | None, others: Sequence[str], open_topic: Callable[[str], None]) -> Source:
    """The topics that groups read, each with the number of groups, and other topics."""
    readers = readers_of(view.snapshot) if view is not None else Counter[str]()
    names: Sequence[str] = sorted({*readers, *others})

    def note(at: int) -> str:
        return counted(readers[names[at]], "group") if readers[names[at]] else ""

    return Source.of(TOPIC, [cells.name(name) for name in names], lambda at: open_topic(names[at]), note)


def readers_of(snapshot: Snapshot) -> Counter[str]:
    found: Counter[str] = Counter()
    for group in snapshot.groups.values():
        topics = {one.topic for one in group.partitions if one.topic is not None}
        found.update(topics | (group.subscribed or frozenset()))
    return found
