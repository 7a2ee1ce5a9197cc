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


@pytest.fixture(params=["small", "nasty", "empty"])
def page(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    out = tmp_path / "out"
    if request.param == "small":
        small(out)
    if request.param == "nasty":
        small(out)
        commit(out, "f_lag", [lag(name, minute, 10**9) for name in NASTY for minute in range(60)], "more")
        rows = [{"group": name, "generation": 10**6, "ended": NOON, "joined": [], "left": []} for name in NASTY]
        commit(out, "f_rebalance", rows, "more")
    return build(out, made_ms=NOON).html


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


def rgb(colour: str) -> str:
    return "rgb({}, {}, {})".format(*(int(colour[at : at + 2], 16) for at in (1, 3, 5)))
