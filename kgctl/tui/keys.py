"""Lists the keys of a screen and what they do, read from its bindings, for the help and the finder."""

from __future__ import annotations

from typing import Any

from textual.app import App
from textual.binding import Binding
from textual.dom import DOMNode
from textual.keys import format_key
from textual.screen import Screen

from broker.light_dataclasses import dataclass

# Bindings that every Textual screen inherits. A screen that uses one declares it again.
_INHERITED = {binding.action for binding in Screen.BINDINGS if isinstance(binding, Binding)}
EVERYWHERE, HERE = "Everywhere", "On this screen"


@dataclass(frozen=True)
class Key:
    """One action with its keys. `node` is the app, screen or widget that has the action; `label` is a word or two."""

    keys: tuple[str, ...]
    label: str
    description: str
    action: str
    node: DOMNode
    is_enabled: bool
    is_shown: bool  # in the last line of the screen, too


@dataclass(frozen=True)
class Section:
    title: str
    keys: tuple[Key, ...]


def sections(screen: Screen[Any]) -> list[Section]:
    """The keys that work now, nearest first: of the screen, of the focused widget, of the app."""
    found: dict[str, dict[tuple[DOMNode, str], list[tuple[Binding, bool]]]] = {}
    for node, binding, is_enabled, _ in screen.active_bindings.values():
        if binding.description and not binding.system and binding.action not in _INHERITED:
            actions = found.setdefault(_title(node), {})
            actions.setdefault((node, binding.action), []).append((binding, is_enabled))
    order = sorted(found, key=lambda title: {HERE: 0, EVERYWHERE: 2}.get(title, 1))
    return [
        Section(title, tuple(_key(node, action, some) for (node, action), some in found[title].items()))
        for title in order
    ]


def shown(binding: Binding) -> str:
    """A key as it is labelled on a keyboard: ctrl+r, ?, \u2191, pgdn."""
    if binding.key_display:
        return binding.key_display
    modifiers, key = binding.parse_key()
    return "+".join([*modifiers, format_key(key)])


def _key(node: DOMNode, action: str, bindings: list[tuple[Binding, bool]]) -> Key:
    # Keys that the last line of the screen shows come first.
    keys = tuple(dict.fromkeys(shown(one) for one, _ in sorted(bindings, key=lambda found: not found[0].show)))
    shown_ones = [binding for binding, _ in bindings if binding.show]
    (first, is_enabled), is_shown = bindings[0], bool(shown_ones)
    first = shown_ones[0] if shown_ones else first
    return Key(keys, first.description, first.tooltip or first.description, action, node, is_enabled, is_shown)


def _title(node: DOMNode) -> str:
    if isinstance(node, App):
        return EVERYWHERE
    if isinstance(node, Screen):
        return HERE
    return str(getattr(node, "HELP_TITLE", "") or f"In the {type(node).__name__.lower()}")
