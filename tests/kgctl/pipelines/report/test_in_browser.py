"""The page in a real browser: light and dark, on a phone, on paper."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kgctl.pipelines.report import build
from kgctl.pipelines.report.addresses import page_of
from kgctl.pipelines.report.palette import DARK, LIGHT
from tests.kgctl.pipelines.report.tables import commit
from tests.kgctl.pipelines.report.test_page import NASTY, NOON, lag, small

pytestmark = pytest.mark.cluster

SCHEME = {"dark": "--blink-settings=preferredColorScheme=0", "light": "--blink-settings=preferredColorScheme=1"}
# Loads the page into a frame of a given width and reports its layout.
HARNESS = """<!DOCTYPE html><body style="margin:0">
<iframe style="width:{width}px;height:900px;border:0" srcdoc="{page}"></iframe><pre id=found></pre><script>
onload = () => {{
  const seen = document.querySelector("iframe").contentDocument, root = seen.documentElement;
  const style = (name) => seen.defaultView.getComputedStyle(seen.querySelector(name));
  const cut = [...seen.querySelectorAll("svg text")].filter((text) => {{
    const svg = text.closest("svg").getBoundingClientRect(), box = text.getBoundingClientRect();
    return box.left < svg.left - 1 || box.right > svg.right + 1 || box.top < svg.top - 1 || box.bottom > svg.bottom + 1;
  }});
  document.querySelector("pre").textContent = JSON.stringify({{
    wide: root.scrollWidth, room: root.clientWidth, page: style("body").backgroundColor, ink: style("body").color,
    figure: seen.querySelector("svg") ? style("svg text").fill : "", cut: cut.map((text) => text.textContent),
    texts: seen.querySelectorAll("svg text").length,
  }});
}};
</script>"""

# Loads the page into a frame, does something there and reports what it gives.
ACTS = """<!DOCTYPE html><body>
<iframe style="width:1200px;height:900px" srcdoc="{page}"></iframe><pre id=found></pre><script>
onload = () => {{
  const seen = document.querySelector("iframe").contentDocument;
  const table = (id) => seen.querySelector(`#${{id}} table`);
  const click = (id, column) => table(id).tHead.rows[0].cells[column].querySelector("button").click();
  const column = (id, number) => [...table(id).tBodies[0].rows].filter((row) => !row.hidden)
    .map((row) => row.cells[number].textContent);
  const filter = (id, text) => {{
    const search = seen.querySelector(`#${{id}} input`);
    search.value = text;
    search.dispatchEvent(new Event("input"));
  }};
  const choose = (id, word) => {{
    const select = seen.querySelector(`#${{id}} select`);
    select.value = word;
    select.dispatchEvent(new Event("change"));
  }};
  document.querySelector("pre").textContent = JSON.stringify((() => {{ {acts} }})());
}};
</script>"""

Browse = Callable[..., str]


@pytest.fixture
def browse(tmp_path: Path) -> Browse:
    found = next(
        filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable"))), None
    )
    if found is None:
        pytest.skip("no chromium or google-chrome on the PATH")

    def run(page: Path, *options: str) -> str:
        own = [f"--user-data-dir={tmp_path / 'browser'}", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        command = [found, "--headless", *own, *options, page.as_uri()]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=100).stdout

    return run


def seen(browse: Browse, page: Path, width: int, scheme: str) -> dict[str, Any]:
    harness = page.with_name("harness.html")
    harness.write_text(HARNESS.format(width=width, page=html.escape(page.read_text())))
    dom = browse(harness, "--dump-dom", SCHEME[scheme], "--window-size=1400,1000")
    found = re.search(r"<pre[^>]*>(.*)</pre>", dom, re.DOTALL)
    assert found is not None
    return dict(json.loads(html.unescape(found[1])))


def acted(browse: Browse, page: Path, acts: str) -> Any:
    harness = page.with_name("acts.html")
    harness.write_text(ACTS.format(page=html.escape(page.read_text()), acts=acts))
    found = re.search(r"<pre[^>]*>(.*)</pre>", browse(harness, "--dump-dom"), re.DOTALL)
    assert found is not None
    return json.loads(html.unescape(found[1]))


@pytest.fixture(params=["small", "nasty", "empty", "group"])
def page(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    out = tmp_path / "out"
    if request.param in ("small", "group"):
        small(out)
    if request.param == "nasty":
        small(out)
        commit(out, "f_lag", [lag(name, minute, 10**9) for name in NASTY for minute in range(60)], "more")
        rows = [{"group": name, "generation": 10**6, "ended": NOON, "joined": [], "left": []} for name in NASTY]
        commit(out, "f_rebalance", rows, "more")
    overview = build(out, made_ms=NOON).html
    return out / page_of("billing") if request.param == "group" else overview


@pytest.mark.parametrize("width", [375, 1200])
def test_the_page_fits_its_window_and_no_text_in_a_chart_is_cut(browse: Browse, page: Path, width: int) -> None:
    found = seen(browse, page, width, "light")
    assert found["room"] == width
    assert found["wide"] <= width
    assert found["cut"] == []
    assert (found["texts"] > 10) == ("<svg" in page.read_text())


@pytest.mark.parametrize(("scheme", "colours"), [("light", LIGHT), ("dark", DARK)])
def test_the_page_follows_the_readers_colour_scheme(
    browse: Browse, tmp_path: Path, scheme: str, colours: dict[str, str]
) -> None:
    small(tmp_path / "out")
    page = build(tmp_path / "out", made_ms=NOON).html
    found = seen(browse, page, 800, scheme)
    assert found["page"] == rgb(colours["page"])
    assert found["ink"] == rgb(colours["ink"])
    assert found["figure"] in (rgb(colours["ink"]), rgb(colours["soft"]))


def test_paper_is_light_in_the_dark_scheme_too(browse: Browse, tmp_path: Path) -> None:
    small(tmp_path / "out")
    page = build(tmp_path / "out", made_ms=NOON).html
    browse(page, f"--print-to-pdf={tmp_path / 'page.pdf'}", SCHEME["dark"])
    assert (tmp_path / "page.pdf").read_bytes().startswith(b"%PDF")
    assert "@media screen and (prefers-color-scheme: dark)" in page.read_text()


LAGS = {"a": 5, "b": 1000, "c": None, "d": 30, "e": 0, "f": 7, "g": 2, "h": 900}


@pytest.fixture
def groups(tmp_path: Path) -> Path:
    """The overview of eight groups, of which one has a lag that is not known."""
    rows = [lag(group, 0, value) for group, value in LAGS.items()]
    commit(tmp_path, "f_lag", rows)
    judged = [{"group": group, "topic": "t", "part": 0, "at": NOON} for group in LAGS]
    statuses = [{**row, "status": "STALLED" if row["group"] in "bd" else "OK"} for row in judged]
    commit(tmp_path, "health", statuses)
    return build(tmp_path, made_ms=NOON).html


def test_a_click_sorts_by_value_and_the_next_one_turns_the_order(browse: Browse, groups: Path) -> None:
    acts = """click("groups", 2); const down = column("groups", 2), order = table("groups").tHead.rows[0].cells[2].ariaSort;
      click("groups", 2); const up = column("groups", 2); click("groups", 0); const names = column("groups", 0);
      const sorted = table("groups").querySelectorAll("[aria-sort]").length;
      return {down, order, up, names, sorted}"""
    known = sorted((value for value in LAGS.values() if value is not None), reverse=True)
    found = acted(browse, groups, acts)
    assert found["down"] == [*(f"{value:,}" for value in known), "-"]
    assert found["up"] == [*(f"{value:,}" for value in reversed(known)), "-"]
    assert found["names"] == list(LAGS)
    assert (found["order"], found["sorted"]) == ("descending", 1)


def test_a_filter_hides_rows_by_text_and_by_health(browse: Browse, groups: Path) -> None:
    acts = """choose("groups", "STALLED"); const stalled = column("groups", 0);
      filter("groups", "30"); const both = column("groups", 0), count = seen.querySelector("#groups [role=status]").textContent;
      choose("groups", ""); filter("groups", ""); return {stalled, both, count, all: column("groups", 0).length}"""
    found = acted(browse, groups, acts)
    assert sorted(found["stalled"]) == ["b", "d"]
    assert (found["both"], found["count"], found["all"]) == (["d"], "1 of 8 rows", 8)


def test_a_page_without_its_script_shows_every_row_and_no_dead_control(browse: Browse, groups: Path) -> None:
    page = groups.with_name("without.html")
    page.write_text(re.sub(r"<script>.*</script>", "", groups.read_text(), flags=re.DOTALL))
    acts = (
        """return {rows: column("groups", 0).length, controls: seen.querySelectorAll("button, input, select").length}"""
    )
    assert acted(browse, page, acts) == {"rows": 8, "controls": 0}


def test_a_script_in_a_name_would_not_run(browse: Browse, groups: Path) -> None:
    page = groups.with_name("injected.html")
    page.write_text(groups.read_text().replace("<main>", "<main><script>document.title = 'run'</script>"))
    assert acted(browse, page, "return seen.title") == "Consumer groups"


def rgb(colour: str) -> str:
    return "rgb({}, {}, {})".format(*(int(colour[at : at + 2], 16) for at in (1, 3, 5)))
