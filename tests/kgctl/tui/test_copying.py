"""The menu that copies a name, a row or a command."""

from __future__ import annotations

import pytest

from kgctl.tui.app import KgctlApp
from kgctl.tui.cluster_label import ClusterLabel
from kgctl.tui.dialogs.copying import CopyMenu
from tests.kgctl.tui import snapshots
from tests.kgctl.tui.groups_scene import Scene, watching

PROD = ClusterLabel("kafka-1:9093", "prod", options=("--context", "prod"))


def texts(scene: Scene) -> dict[str, str]:
    assert isinstance(scene.app.screen, CopyMenu)
    return {row.key: row.text for row in scene.app.screen.rows.rows}


@pytest.mark.parametrize(
    ("keys", "copied"),
    [
        (("n",), "billing"),
        (("y",), "billing"),
        (("enter",), "billing"),
        (("j", "j", "y"), "kgctl groups describe billing --context prod"),
        (("c",), "kgctl groups describe billing --context prod"),
    ],
)
def test_a_letter_or_the_cursor_chooses_what_is_copied(keys: tuple[str, ...], copied: str) -> None:
    async def walk(scene: Scene) -> None:
        await scene.press("y", *keys)
        assert scene.app.screen is scene.screen
        assert scene.app.clipboard == copied

    watching([snapshots.snapshot([snapshots.group("billing", lags=(3,))])], walk, cluster=PROD)


def test_a_row_has_its_cells_separated_by_tabs() -> None:
    async def walk(scene: Scene) -> None:
        await scene.press("y", "r")
        cells = scene.app.clipboard.split("\t")
        assert (cells[0], cells[2], cells[5]) == ("billing", "Stable", "3")

    watching([snapshots.snapshot([snapshots.group("billing", lags=(3,))])], walk)


def test_the_menu_shows_the_whole_text_and_escape_copies_nothing() -> None:
    async def walk(scene: Scene) -> None:
        await scene.press("y", "j", "j")
        menu = scene.app.screen
        assert str(menu.query_one("#text").render()) == texts(scene)["c"]
        await scene.press("escape")
        assert scene.app.screen is scene.screen
        assert scene.app.clipboard == ""

    watching([snapshots.snapshot([snapshots.group("billing")])], walk)


def test_hostile_names_are_copied_as_a_shell_quotes_them() -> None:
    async def walk(scene: Scene) -> None:
        await scene.press("y")
        found = texts(scene)
        assert found["n"] == "$'bell\\007\\012rm'"
        assert "bell\\x07\\nrm" in found["r"]
        assert found["c"].startswith("kgctl groups describe $'bell\\007\\012rm' --bootstrap")

    watching([snapshots.snapshot([snapshots.group("bell\x07\nrm")])], walk)


def test_a_screen_without_rows_says_that_there_is_nothing_to_copy() -> None:
    async def walk(scene: Scene) -> None:
        app: KgctlApp = scene.app
        await scene.press("y")
        assert app.screen is scene.screen

    watching([snapshots.snapshot([])], walk)
