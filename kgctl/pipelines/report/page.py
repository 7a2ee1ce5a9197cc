"""Renders the page and the charts from templates: one HTML file that loads nothing, for screens, phones and paper."""

from __future__ import annotations

from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from kgctl.pipelines.report import wording
from kgctl.pipelines.report.charts import Chart, LagChart, RebalanceChart
from kgctl.pipelines.report.palette import DARK, LIGHT, css
from kgctl.pipelines.report.rows import Facts
from kgctl.pipelines.schemas import TABLES

TABLE_REBALANCES = 50


def page(facts: Facts, title: str, made_ms: int, lag: LagChart | None, rebalances: RebalanceChart | None) -> str:
    newest = facts.rebalances.newest[-TABLE_REBALANCES:] if facts.rebalances else ()
    return _render(
        "page.html.jinja",
        facts=facts,
        title=title,
        made_ms=made_ms,
        summary=wording.summary(facts),
        period=wording.period(facts.first_ms, facts.last_ms),
        meanings=wording.MEANINGS,
        contents={name: table.summary for name, table in TABLES.items()},
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
    environment.globals |= {"light": Markup(css(LIGHT)), "dark": Markup(css(DARK))}
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
