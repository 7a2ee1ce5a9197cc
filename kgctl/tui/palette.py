"""The commands of the palette: what the keys of a screen do, and every group to be opened."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from textual.app import App
from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.content import Content
from textual.screen import Screen

from kgctl.tui import cells
from kgctl.tui.keys import Key, sections

if TYPE_CHECKING:
    from kgctl.tui.app import KgctlApp

OPEN = "open "
MOST_GROUPS = 50


class KeyCommands(Provider):
    """What can be done on this screen now, each with its key. How to move about is not among it."""

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
    """`open GROUP`, also by a part of its name alone."""

    async def discover(self) -> Hits:
        return
        yield

    async def search(self, query: str) -> Hits:
        app: KgctlApp = self.app  # type: ignore[assignment]
        wanted = query.casefold().removeprefix(OPEN).strip()
        found = [name for name in app.group_names() if wanted in name.casefold()] if wanted else []
        # A name that begins so stands first; of many, only the first few: more would be no help.
        found.sort(key=lambda name: (not name.casefold().startswith(wanted), len(name), name))
        for place, name in enumerate(found[:MOST_GROUPS]):
            text = OPEN + cells.name(name)
            yield Hit(0.9 - place / 1000, Content(text), partial(app.open_group, name), text)


def _text(key: Key) -> str:
    return f"{key.description}  ({' '.join(key.keys)})"
