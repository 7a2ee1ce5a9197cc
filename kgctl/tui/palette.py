"""The commands of the palette: the actions of a screen, and opening any group."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import cast

from textual.app import App
from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.content import Content
from textual.screen import Screen

from kgctl.tui import cells
from kgctl.tui.dashboard import Dashboard
from kgctl.tui.keys import Key, sections

OPEN = "open "
MOST_GROUPS = 50


class KeyCommands(Provider):
    """The actions of this screen and of the app that are enabled now, each with its key. Cursor movement is left out."""

    async def discover(self) -> Hits:
        for key in self._keys():
            yield DiscoveryHit(Content(_text(key)), partial(self.app.run_action, key.action, key.node), _text(key))

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for key in self._keys():
            score = matcher.match(_text(key))
            if score > 0:
                run = partial(self.app.run_action, key.action, key.node)
                yield Hit(score, matcher.highlight(_text(key)), run, _text(key))

    def _keys(self) -> Iterator[Key]:
        for section in sections(self.screen):
            for key in section.keys:
                if key.is_enabled and isinstance(key.node, App | Screen) and key.action != "command_palette":
                    yield key


class GroupCommands(Provider):
    """`open GROUP`; a part of the name suffices."""

    async def discover(self) -> Hits:
        return
        yield

    async def search(self, query: str) -> Hits:
        dashboard = cast(Dashboard, self.app)
        wanted = query.casefold().removeprefix(OPEN).strip()
        found = [name for name in dashboard.group_names() if wanted in name.casefold()] if wanted else []
        # Names that start with the query come first. A list of all 10,000 would be of no use.
        found.sort(key=lambda name: (not name.casefold().startswith(wanted), len(name), name))
        for rank, name in enumerate(found[:MOST_GROUPS]):
            text = OPEN + cells.name(name)
            yield Hit(0.9 - rank / 1000, Content(text), partial(dashboard.open_group, name), text)


def _text(key: Key) -> str:
    return f"{key.description}  ({' '.join(key.keys)})"
