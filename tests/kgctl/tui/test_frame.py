"""The frame of every screen: glyphs with their ASCII forms, panels, zoom, focus, the header and the line of keys."""

from __future__ import annotations

import ast
import asyncio
from pathlib import Path

import pytest
from rich.cells import cell_len
from textual.app import App, ComposeResult
from textual.content import Content

import kgctl.tui
from kgctl.model.health import ATTENTION
from kgctl.tui.app import KgctlApp
from kgctl.tui.cluster_label import ClusterLabel
from kgctl.tui.polling import Freshness
from kgctl.tui.screens.group import GroupScreen
from kgctl.tui.themes import THEMES
from kgctl.tui.widgets.charts.area import area, fitted
from kgctl.tui.widgets.frame.glyphs import ASCII, BLOCKS, in_ascii
from kgctl.tui.widgets.frame.header import Header, facts_of
from kgctl.tui.widgets.frame.key_line import KeyLine
from kgctl.tui.widgets.frame.looks import look
from kgctl.tui.widgets.frame.panel import Panel
from kgctl.tui.widgets.frame.terminal import is_ascii_only
from tests.kgctl.tui import snapshots
from tests.kgctl.tui.groups_scene import Scene, watching
from tests.kgctl.tui.prepared import PreparedFeed
from tests.kgctl.tui.waiting import until

# Shown only in texts about names, which are not glyphs.
NOT_DRAWN = {"\u202e"}


# ---- glyphs


def test_each_glyph_in_the_code_of_the_dashboard_has_an_ascii_form() -> None:
    drawn: set[str] = set()
    for path in Path(kgctl.tui.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                drawn |= {char for char in node.value if not char.isascii()}
    assert not drawn - ASCII.keys() - NOT_DRAWN


def test_each_glyph_and_its_ascii_form_are_one_cell_wide() -> None:
    assert [glyph for glyph in ASCII if cell_len(glyph) != 1] == []
    assert [form for form in ASCII.values() if len(form) != 1 or not form.isascii()] == []
    assert len({ASCII[block] for block in BLOCKS}) == len(BLOCKS)


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("\u2716 a\u2026", "X a~"),
        ("\u6ce8\u6587", "????"),
        ("caf\u00e9", "cafe"),
        ("e\u0301", "e"),
        ("\u2591\u2588", ".#"),
    ],
)
def test_ascii_keeps_the_width(text: str, plain: str) -> None:
    assert in_ascii(text).rstrip() == plain
    assert cell_len(in_ascii(text)) == cell_len(text)


def test_verdicts_of_another_colour_have_another_glyph() -> None:
    looks = {look(health) for health in ATTENTION}
    assert len({found.glyph for found in looks}) == len(looks)


@pytest.mark.parametrize(
    ("environ", "is_plain"),
    [
        ({}, False),
        ({"TERM": "linux", "LANG": "en_US.UTF-8"}, True),
        ({"TERM": "xterm-256color", "LANG": "de_DE.utf8"}, False),
        ({"LANG": "en_US.ISO-8859-1"}, True),
        ({"LANG": "C"}, True),
        ({"LANG": "C", "LC_CTYPE": "C.UTF-8"}, True),
        ({"LC_CTYPE": "C.UTF-8"}, False),
        ({"LANG": "C", "LC_ALL": "en_US.UTF-8"}, False),
        ({"LANG": "en_US.UTF-8", "LC_ALL": "POSIX"}, True),
    ],
)
def test_a_terminal_without_utf_8_gets_ascii(environ: dict[str, str], is_plain: bool) -> None:
    assert is_ascii_only(environ) is is_plain


def test_a_screen_in_ascii_mode_has_no_other_character() -> None:
    async def run() -> None:
        feed = PreparedFeed([snapshots.snapshot([*snapshots.every_state(), *snapshots.hostile()])])
        app = KgctlApp(feed, clock=lambda: snapshots.NOW_S)
        app.ascii_only = True
        async with app.run_test(size=(120, 40)) as pilot:
            await until(app.ready.is_set)
            await pilot.pause()
            text = "\n".join(
                "".join(segment.text for segment in strip) for strip in app.screen._compositor.render_strips()
            )
        assert "X fraud-detection" in text
        assert "+- 4>Groups" in text
        assert text.isascii()

    asyncio.run(run())


# ---- charts


def test_a_series_is_fitted_from_its_first_known_value() -> None:
    assert fitted([None, None, 1, 2], 3) == (None, 1, 2)
    assert fitted([None, 1, 3, 5, 7], 2) == (2, 6)
    assert fitted([None, 1, None, 5, 7], 2) == (1, 6)
    assert fitted([], 2) == (None, None)


def test_an_area_fills_lines_from_the_bottom() -> None:
    assert area([None, 0.0, 0.5, 0.75, 1.0], 2) == ["   \u2584\u2588", " \u2581\u2588\u2588\u2588"]


# ---- panels


class TwoPanels(App[None]):
    CSS = "Panel { width: 40; height: 5; }"

    def __init__(self) -> None:
        super().__init__()
        for theme in THEMES:
            self.register_theme(theme)
        self.theme = "dark"
        self.panel = Panel("Groups", number=1)

    def compose(self) -> ComposeResult:
        yield self.panel


@pytest.mark.parametrize(
    ("parts", "note", "title"),
    [
        (("Groups 9",), "", "\u00b9 Groups 9"),
        (("Groups 9", "lag\u2193"), "x", "\u00b9 Groups 9 \u00b7 lag\u2193 " + "\u2500" * 14 + " x"),
        (("Groups 9", "a part that is longer than the room"), "", "\u00b9 Groups 9"),
        (("Groups 9",), "a note that is longer than the room", "\u00b9 Groups 9"),
        (("A name that is longer than the whole panel",), "", "\u00b9 A name that is longer than the \u2026"),
    ],
)
def test_a_title_leaves_out_whole_parts(parts: tuple[str, ...], note: str, title: str) -> None:
    async def run() -> None:
        app = TwoPanels()
        async with app.run_test(size=(80, 10)) as pilot:
            app.panel.show_title(*parts, note=note)
            await pilot.pause()
            assert app.panel.title_text == title

    asyncio.run(run())


def shown(scene: Scene) -> list[str | None]:
    return [panel.id for panel in scene.screen.query(Panel) if panel.size.height and panel.display]


def one() -> list[snapshots.Snapshot]:
    return [snapshots.snapshot([snapshots.group("billing"), snapshots.group("fraud", silent_ms=40_000)])]


@pytest.mark.parametrize(
    ("size", "panels"),
    [
        ((80, 24), ["groups", "preview"]),
        ((80, 40), ["needs-you", "cluster-lag", "groups", "preview"]),
        ((120, 40), ["needs-you", "cluster-lag", "events", "groups", "preview"]),
        ((200, 60), ["needs-you", "cluster-lag", "events", "groups", "preview"]),
    ],
)
def test_each_size_has_the_panels_that_fit(size: tuple[int, int], panels: list[str]) -> None:
    async def walk(scene: Scene) -> None:
        assert shown(scene) == panels

    watching(one(), walk, size)


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
def test_a_number_zooms_a_panel_also_one_that_does_not_fit(size: tuple[int, int]) -> None:
    async def walk(scene: Scene) -> None:
        before = shown(scene)
        for number, panel in (("1", "needs-you"), ("2", "cluster-lag"), ("3", "events"), ("4", "groups")):
            await scene.press(number)
            assert shown(scene) == [panel]
            assert scene.screen.query_one(f"#{panel}").outer_size.height == size[1] - 2
        await scene.press("4")
        assert shown(scene) == before
        await scene.press("2", "escape")
        assert shown(scene) == before
        assert scene.screen.rows.has_focus

    watching(one(), walk, size)


def test_tab_moves_the_focus_from_panel_to_panel() -> None:
    async def walk(scene: Scene) -> None:
        screen = scene.screen
        assert screen.rows.has_focus
        assert screen.panel.title_text.startswith("\u2074\u25b8Groups")
        for key, panel in (("tab", screen.needs_you), ("tab", screen.events), ("shift+tab", screen.needs_you)):
            await scene.press(key)
            assert panel.table.has_focus
            assert panel.title_text[1] == "\u25b8"
        assert screen.current == screen.all[1]
        await scene.press("enter")
        assert isinstance(scene.app.screen, GroupScreen)
        assert scene.app.screen.group == "fraud"

    watching(one(), walk)


def test_g_and_a_letter_go_to_a_screen() -> None:
    async def walk(scene: Scene) -> None:
        await scene.press("enter")
        assert isinstance(scene.app.screen, GroupScreen)
        await scene.press("g")
        assert "gg Groups" in str(scene.app.screen.query_one(KeyLine).render())
        await scene.press("g")
        assert scene.app.screen is scene.screen
        await scene.press("g", "j")
        assert scene.app.screen is scene.screen
        assert "gg Groups" not in scene.text(KeyLine)

    watching(one(), walk)


# ---- header

LOCAL = ClusterLabel("127.0.0.1:9092", "local")
LIVE = Freshness(answered_at_s=100.0, took_s=0.1)


class OnlyHeader(App[None]):
    def __init__(self, place: str) -> None:
        super().__init__()
        self.header = Header(place)

    def compose(self) -> ComposeResult:
        yield self.header


def header(width: int, place: str = "", fresh: Freshness = LIVE, now_s: float = 100.0, **options: object) -> str:
    found: list[str] = []

    async def run() -> None:
        app = OnlyHeader(place)
        async with app.run_test(size=(width, 5)) as pilot:
            settings: dict[str, object] = {"paused": False, "read_only": False, **options}
            app.header.show(LOCAL, fresh, now_s, 2.0, **settings)  # type: ignore[arg-type]
            await pilot.pause()
            found.append(app.header.text)

    asyncio.run(run())
    return " ".join(found[0].split())


def test_the_header_names_the_cluster_and_says_that_it_is_live() -> None:
    facts = facts_of(LOCAL, 1, 6)
    assert header(80, facts=facts) == "kgctl local 127.0.0.1:9092 \u00b7 1 broker \u00b7 6 topics \u25cf live 2s"
    assert header(50, facts=facts, read_only=True) == "kgctl local READ-ONLY \u25cf live 2s"


def test_the_header_of_a_group_leaves_out_what_does_not_fit() -> None:
    headline = [Content("\u25b2 LAGGING"), Content("189,671"), Content("+158/s"), Content("18 min behind")]
    whole = "kgctl \u203a local \u203a slow \u25b2 LAGGING 189,671 +158/s 18 min behind \u25cf live 2s"
    assert header(100, "slow", headline=headline) == whole
    assert (
        header(55, "slow", headline=headline) == "kgctl \u203a local \u203a slow \u25b2 LAGGING 189,671 \u25cf live 2s"
    )


@pytest.mark.parametrize(
    ("now_s", "options", "state"),
    [
        (105.0, {}, "\u25cf 5 s old"),
        (147.0, {}, "\u25b2 STALE \u00b7 47 s old"),
        (147.0, {"paused": True}, "\u2016 PAUSED \u00b7 47 s old"),
    ],
)
def test_the_header_says_how_old_the_data_are(now_s: float, options: dict[str, object], state: str) -> None:
    assert header(80, now_s=now_s, **options).endswith(state)


def test_the_header_says_that_nothing_has_been_answered_yet() -> None:
    assert header(80, fresh=Freshness()).endswith("\u25cb loading \u2026")
