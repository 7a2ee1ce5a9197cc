"""Renders the page and the charts from templates: one HTML file that loads nothing, for screens, phones and paper."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from functools import cache
from importlib import resources

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from kgctl.pipelines.report import wording
from kgctl.pipelines.report.charts import Chart, LagChart, RebalanceChart, lag_chart, rebalance_chart
from kgctl.pipelines.report.group_facts import MAX_PARTITIONS
from kgctl.pipelines.report.listings import Listing
from kgctl.pipelines.report.palette import DARK, LIGHT, css
from kgctl.pipelines.report.rows import Facts, GroupFacts
from kgctl.pipelines.schemas import TABLES

TABLE_REBALANCES = 50


def page(
    facts: Facts,
    listings: Sequence[Listing],
    title: str,
    made_ms: int,
    lag: LagChart | None,
    rebalances: RebalanceChart | None,
) -> str:
    """The overview."""
    newest = facts.rebalances.newest[-TABLE_REBALANCES:] if facts.rebalances else ()
    return _render(
        "page.html.jinja",
        facts=facts,
        listings=listings,
        title=title,
        made_ms=made_ms,
        summary=wording.summary(facts),
        period=wording.period(facts.first_ms, facts.last_ms),
        meanings=wording.MEANINGS,
        contents_of={name: table.summary for name, table in TABLES.items()},
        links=_links(facts, listings),
        newest=newest[::-1],
        lag_svg=lag and svg(lag, standalone=False),
        rebalances_svg=rebalances and svg(rebalances, standalone=False),
    )


def _links(facts: Facts, listings: Sequence[Listing]) -> list[tuple[str, str]]:
    """The sections of the overview, by id."""
    shown = [
        ("health", "Health", True),
        ("groups", "Groups", True),
        ("lag", "Lag over time", True),
        ("unhealthy", "Unhealthy partitions", facts.health is not None),
        ("catch-up", "Time to catch up", facts.lag_map is not None),
        ("rebalances", "Rebalances", True),
    ]
    own = [(id_, title) for id_, title, is_there in shown if is_there and facts.groups]
    return [*own, *((one.id, one.title) for one in listings), ("tables", "Tables")]


def group_page(facts: GroupFacts, title: str, made_ms: int) -> str:
    """The page of a group, two folders below the overview."""
    shown = facts.partitions[:MAX_PARTITIONS]
    newest = facts.rebalances.newest[-TABLE_REBALANCES:] if facts.rebalances else ()
    lag = facts.lag_map and lag_chart(facts.lag_map, "partition")
    rebalances = facts.rebalances and rebalance_chart(facts.rebalances)
    return _render(
        "group.html.jinja",
        facts=facts,
        title=wording.name(facts.group),
        overview=title,
        made_ms=made_ms,
        summary=wording.group_summary(facts),
        partitions=shown,
        newest=newest[::-1],
        lag_svg=lag and svg(lag, standalone=False),
        rebalances_svg=rebalances and svg(rebalances, standalone=False),
    )


def svg(chart: Chart, *, standalone: bool) -> Markup:
    """The <svg> element. A standalone one is a separate file and contains its colours; else the page does."""
    name = "lag" if isinstance(chart, LagChart) else "rebalances"
    return Markup(_render(f"{name}.svg.jinja", chart=chart, standalone=standalone).strip())


def _render(template: str, **context: object) -> str:
    return _environment().get_template(template).render(context)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("kgctl.pipelines.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    script = resources.files("kgctl.pipelines.report").joinpath("templates", "script.js").read_text().strip()
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    environment.globals |= {
        "light": Markup(css(LIGHT)),
        "dark": Markup(css(DARK)),
        "script": Markup(script),
        # Whatever the tables hold, the browser runs this script only and loads nothing.
        "policy": f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'",
    }
    environment.filters |= {
        "counted": wording.counted,
        "duration": wording.duration,
        "moment": wording.moment,
        "name": wording.name,
        "number": wording.number,
        "plain": wording.plain,
        "rate": wording.rate,
        "ratio": wording.ratio,
        "seconds": wording.seconds,
        "share": wording.share,
    }
    return environment
