"""Textual without work that no test sees, which is half of what a test of the dashboard computes.

- Styles depend on the style sheet and on the path from the app to a widget: types, ids, classes and pseudo-classes. They are
  computed once for each such pair, also across apps, and not again for every widget below one that changed.
- A terminal without display draws nothing. What tests read is rendered, and the last screen of an app of which nothing was
  read; other updates only for snapshots: the widths of columns depend on what was rendered before.

`test_every_screen.py` compares the styles of every screen with those that Textual computes.
"""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, NamedTuple

import pytest
from textual._compositor import Compositor
from textual._context import visible_screen_stack
from textual.app import App
from textual.css.styles import Styles
from textual.css.stylesheet import Stylesheet
from textual.dom import DOMNode
from textual.pilot import Pilot

FLAGS = ("_has_hover_style", "_has_focus_within", "_has_order_style", "_has_odd_or_even")


class Styled(NamedTuple):
    """What a style sheet means for the nodes of one path: rules, None if it has none, how styles store them, and FLAGS."""

    rules: Any
    stored: Any
    flags: tuple[bool, ...]


class Sheet:
    """All style sheets with the same sources, in the same order, and the same variables."""

    def __init__(self, number: int, pseudo_classes: set[str]) -> None:
        self.number = number
        self.pseudo_classes = sorted(pseudo_classes)
        self.styled: dict[int, Styled] = {}


_sheets: dict[Any, Sheet] = {}
_parsed: dict[Any, Any] = {}
_paths: dict[Any, int] = {}
_numbers = itertools.count(1)
# The paths of the nodes that are updated together: they do not change meanwhile.
_known: dict[DOMNode, int] | None = None
# Whether a test has read the screen of the running app.
_was_read = False


def _sheet_of(stylesheet: Stylesheet) -> Sheet:
    rules_map = stylesheet.rules_map
    found: tuple[Any, Sheet] | None = getattr(stylesheet, "_kgctl_sheet", None)
    if found is None or found[0] is not rules_map:
        key = (tuple(stylesheet.source.items()), tuple(stylesheet._variables.items()))
        if key not in _sheets:
            used = set().union(*(rule.pseudo_classes for rule in stylesheet.rules))
            _sheets[key] = Sheet(next(_numbers), used)
        found = (rules_map, _sheets[key])
        stylesheet._kgctl_sheet = found  # type: ignore[attr-defined]
    return found[1]


def _path_of(node: DOMNode, sheet: Sheet) -> int:
    """The number of the path from the app to a node, as far as selectors can tell paths apart."""
    known = _known
    if known is not None and node in known:
        return known[node]
    parent = node._parent
    checks = node._PSEUDO_CLASSES
    key = (
        _path_of(parent, sheet) if isinstance(parent, DOMNode) else sheet.number,
        type(node),
        node._id,
        node.classes,
        tuple([name in checks and checks[name](node) for name in sheet.pseudo_classes]),  # type: ignore[arg-type]
    )
    if (path := _paths.get(key)) is None:
        path = _paths[key] = next(_numbers)
    if known is not None:
        known[node] = path
    return path


_apply = Stylesheet.apply
_update_nodes = Stylesheet.update_nodes
_parse_rules = Stylesheet._parse_rules
_render_update = Compositor.render_update
_render_strips = Compositor.render_strips
_run_test = App.run_test


def computed(stylesheet: Stylesheet, node: DOMNode) -> Styled:
    """What Textual computes, without applying it to the node's styles."""
    found: list[Any] = []
    stylesheet.replace_rules = lambda node, rules, animate=False: found.append(rules)  # type: ignore[assignment,method-assign]
    stylesheet._process_component_classes = lambda node: None  # type: ignore[method-assign]
    try:
        _apply(stylesheet, node)
    finally:
        del stylesheet.replace_rules, stylesheet._process_component_classes
    rules = found[0] if found else None
    styles = Styles()
    for name, value in (rules or {}).items():
        setattr(styles, name, value)
    return Styled(rules, styles._rules, tuple(getattr(node, flag) for flag in FLAGS))


def changed(base: Styles, styled: Styled) -> list[str]:
    """The names of rules that `base` does not have as they should be."""
    have: Any = base._rules
    want = styled.stored
    return [
        name
        for name in have.keys() | want.keys()
        if (old := have.get(name)) != (new := want.get(name))
        # Each node has a layout of its own.
        and not (name == "layout" and old and new and old.name == new.name)
    ]


def replace_rules(stylesheet: Stylesheet, node: DOMNode, styled: Styled, animate: bool) -> None:
    if animate and "transitions" in styled.rules:
        stylesheet.replace_rules(node, styled.rules, animate=animate)
        return
    base = node.styles.base
    for name in changed(base, styled):
        setattr(base, name, styled.rules.get(name))
    node.notify_style_update()


def apply(stylesheet: Stylesheet, node: DOMNode, *, animate: bool = False, cache: Any = None) -> None:
    sheet = _sheet_of(stylesheet)
    path = _path_of(node, sheet)
    styled = sheet.styled.get(path)
    if styled is None:
        styled = sheet.styled[path] = computed(stylesheet, node)
    for flag, value in zip(FLAGS, styled.flags, strict=True):
        setattr(node, flag, value)
    if styled.rules is not None:
        replace_rules(stylesheet, node, styled, animate)
    # The styles of the parts of a widget have no other inputs.
    if node._get_component_classes() and getattr(node, "_kgctl_path", None) != path:
        stylesheet._process_component_classes(node)
        node._kgctl_path = path  # type: ignore[attr-defined]


def parse_rules(stylesheet: Stylesheet, css: str, read_from: Any, *more: Any, **named: Any) -> Any:
    key = (css, read_from, more, tuple(named.items()), tuple(stylesheet._variables.items()))
    if key not in _parsed:
        _parsed[key] = _parse_rules(stylesheet, css, read_from, *more, **named)
    return _parsed[key]


def update_nodes(stylesheet: Stylesheet, nodes: Any, animate: bool = False) -> None:
    global _known
    before, _known = _known, {}
    try:
        _update_nodes(stylesheet, nodes, animate)
    finally:
        _known = before


def differences(app: App[Any]) -> list[str]:
    """The styles of widgets of the screen, and of their parts, that are not those that Textual computes now."""
    found = []
    for widget in app.screen.walk_children(with_self=True):
        for node in (widget, *(styles.node for styles in widget._component_styles.values())):
            assert node is not None
            names = changed(node.styles.base, computed(app.stylesheet, node))
            found += [f"{name} of {node} of {widget}" for name in names]
    return found


def render_update(compositor: Compositor, full: bool = False, screen_stack: Any = None, simplify: bool = False) -> Any:
    if full:
        return _render_update(compositor, full, screen_stack, simplify)
    visible_screen_stack.set(screen_stack or [])
    is_dirty = bool(compositor._dirty_regions)
    compositor._dirty_regions.clear()
    return "" if is_dirty else None


def render_strips(compositor: Compositor, size: Any = None) -> Any:
    global _was_read
    _was_read = True
    return _render_strips(compositor, size)


@asynccontextmanager
async def run_test(app: App[Any], **options: Any) -> AsyncIterator[Pilot[Any]]:
    global _was_read
    _was_read = False
    async with _run_test(app, **options) as pilot:
        yield pilot
        if app._screen_stack and not _was_read:
            app.screen._compositor.render_strips()


@contextmanager
def quick_styles() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Stylesheet, "apply", apply)
        patch.setattr(Stylesheet, "update_nodes", update_nodes)
        patch.setattr(Stylesheet, "_parse_rules", parse_rules)
        yield


@contextmanager
def few_renders() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Compositor, "render_update", render_update)
        patch.setattr(Compositor, "render_strips", render_strips)
        patch.setattr(App, "run_test", run_test)
        yield
