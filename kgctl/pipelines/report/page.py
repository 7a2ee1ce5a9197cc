"""The page: one HTML file that needs nothing else, light, dark, on paper and on a phone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from kgctl.pipelines.report import words
from kgctl.pipelines.report.drawing import as_svg
from kgctl.pipelines.report.figures import Picture
from kgctl.pipelines.report.palette import DARK, LIGHT, css
from kgctl.pipelines.report.rows import Facts, GroupNow, Health, Rebalance, Rebalances, Verdict
from kgctl.pipelines.report.style import STYLE

TABLE_REBALANCES = 50


@dataclass(frozen=True, slots=True)
class Heading:
    """Of a table's column; `right` for numbers."""

    text: str
    right: bool = False


@dataclass(frozen=True, slots=True)
class Cell:
    """`html` is escaped already."""

    html: str
    kind: str = ""


def page(facts: Facts, title: str, made_ms: int, lag: Picture | None, rebalances: Picture | None) -> str:
    parts = [
        f"<header><h1>{_text(title)}</h1>",
        f"<p class=summary>{_text(' '.join(words.summary(facts)))}</p>",
        f"<p class=soft>{_text(_about(facts, made_ms))}</p></header><main>",
    ]
    if facts.groups:
        parts += _health(facts.health)
        parts += _lag(facts, lag)
        parts += _stuck(facts.health)
        parts += _catching_up(facts)
        parts += _rebalances(facts.rebalances, rebalances)
    parts += _tables(facts)
    return (
        "<!DOCTYPE html>\n"
        f'<html lang="en"><head><meta charset="utf-8"><title>{_text(title)}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<style>:root {{ {css(LIGHT)} }}\n"
        f"@media screen and (prefers-color-scheme: dark) {{ :root {{ {css(DARK)} }} }}\n{STYLE}</style></head>\n"
        "<body>" + "\n".join(parts) + "\n</main></body></html>\n"
    )


def _about(facts: Facts, made_ms: int) -> str:
    cluster = f"Cluster {words.name(facts.cluster)}. " if facts.cluster else ""
    return f"{cluster}Made {words.moment(made_ms)} UTC. All times are in UTC."


def _health(health: Health | None) -> list[str]:
    head = "<section><h2>Health</h2>"
    if health is None:
        return [head, _none("No group was judged: run the job evaluate."), "</section>"]
    rows = [
        [
            Cell(_verdict(count.status)),
            Cell(words.number(count.partitions)),
            Cell(words.number(count.groups)),
            Cell(_text(words.VERDICTS[count.status][1]), "wide"),
        ]
        for count in health.counts
    ]
    return [
        head,
        _p(
            f"Each partition that a group reads was judged at {words.moment(health.at_ms)} by its last commits. "
            "A group counts by its worst partition."
        ),
        _table(
            "Verdicts",
            [Heading("Verdict"), Heading("Partitions", True), Heading("Groups", True), Heading("What it means")],
            rows,
        ),
        "</section>",
    ]


def _lag(facts: Facts, picture: Picture | None) -> list[str]:
    head = "<section><h2>Lag over time</h2>"
    if facts.lag_map is None or picture is None:
        return [head, _none("How far the groups were behind is not known: run the job lag."), "</section>"]
    more = facts.lag_map.more_groups
    return [
        head,
        _p(
            "Lag is how many records wait for a group. One row is a group, from left to right goes time, and a stronger "
            "colour means more records. The group with the most at any time comes first. Where nothing is drawn, nothing "
            "is known: the group had no commit yet, or the ends of its logs were not asked for."
        ),
        _figure(picture),
        _more(more, "group", "whose lag was never higher"),
        "</section>",
    ]


def _stuck(health: Health | None) -> list[str]:
    if health is None:
        return []
    head = "<section><h2>Partitions in trouble</h2>"
    if not health.bad:
        return [head, "<p>None: every partition is healthy.</p></section>"]
    headings = [
        Heading("Group"),
        Heading("Topic"),
        Heading("Partition", True),
        Heading("Verdict"),
        Heading("Records waiting", True),
        Heading("Behind for", True),
        Heading("Seen", True),
        Heading("Why"),
    ]
    return [
        head,
        _table("The worst partitions, worst first", headings, [_stuck_row(one) for one in health.bad]),
        _more(health.more_bad, "partition", "that is not healthy", "that are not healthy"),
        _note(
            "Seen: how much of the judged window is filled with commits; below 100% the verdict rests on fewer "
            "commits than it could, since the group is young or its older commits were compacted away. "
            "Behind for: the age of the first record that waits; -: it could not be looked up."
        ),
        "</section>",
    ]


def _stuck_row(one: Verdict) -> list[Cell]:
    return [
        _name(one.group),
        _name(one.topic),
        Cell(str(one.part)),
        Cell(_verdict(one.status)),
        Cell(words.number(one.lag)),
        Cell(words.duration(one.lag_ms)),
        Cell(words.share(one.complete)),
        Cell(_text("; ".join(words.name(reason) for reason in one.reasons) or words.NONE), "wide"),
    ]


def _catching_up(facts: Facts) -> list[str]:
    head = "<section><h2>When it will have caught up</h2>"
    if facts.lag_map is None:
        return []
    if not facts.now:
        return [head, "<p>Nothing waits: all groups have read to the end.</p></section>"]
    headings = [
        Heading("Group"),
        Heading("Partitions behind", True),
        Heading("Records waiting", True),
        Heading("Behind for", True),
        Heading("Read", True),
        Heading("Written", True),
        Heading("Caught up in", True),
    ]
    return [
        head,
        _p(
            "Groups with records waiting, the most first, at the last point in time that is known of each. It will have "
            "caught up when its slowest partition has, if reading and writing go on as they were."
        ),
        _table("Lag and rates of groups", headings, [_now_row(one) for one in facts.now]),
        _more(facts.more_now, "group", "with records waiting"),
        _note(
            "Not at this rate: at least one partition is not read faster than it is written. - under Read and "
            "Written: there is no point in time before, to compare with."
        ),
        "</section>",
    ]


def _now_row(one: GroupNow) -> list[Cell]:
    caught_up = "not at this rate" if one.grows else words.duration(None if one.eta_s is None else one.eta_s * 1000)
    return [
        _name(one.group),
        Cell(f"{one.behind:,} of {one.partitions:,}"),
        Cell(words.number(one.lag)),
        Cell(words.duration(one.lag_ms)),
        Cell(words.rate(one.consume_rate)),
        Cell(words.rate(one.produce_rate)),
        Cell(caught_up),
    ]


def _rebalances(found: Rebalances | None, picture: Picture | None) -> list[str]:
    head = "<section><h2>Rebalances</h2>"
    if found is None or picture is None:
        return [head, _none("None is known. If there should be some, run the job rebalances."), "</section>"]
    headings = [
        Heading("Ended"),
        Heading("Group"),
        Heading("Generation", True),
        Heading("Took", True),
        Heading("Cause"),
        Heading("Joined", True),
        Heading("Left", True),
        Heading("Members", True),
        Heading("Moved", True),
        Heading("Skew", True),
        Heading("Refused", True),
    ]
    shown = list(reversed(found.newest[-TABLE_REBALANCES:]))
    return [
        head,
        _p(
            "In a rebalance the members of a group share out its partitions anew; with many clients nothing is read "
            "meanwhile. Each leads to a generation, whose number is above the bar; the bar's width is how long it took, its "
            "colour why it began."
        ),
        _figure(picture),
        _more(found.groups - min(found.groups, len(found.busiest)), "group", "that rebalanced less often"),
        _table("The newest rebalances, newest first", headings, [_rebalance_row(one) for one in shown]),
        _more(found.count - len(shown), "rebalance", "before these"),
        _note(
            "Moved: partitions that have another owner than before. Skew: partitions of the busiest member over "
            "the mean, 1 is even. Refused: commits that came too late, for an older generation. "
            "-: not known." + _only_ends(found.without_duration)
        ),
        "</section>",
    ]


def _only_ends(count: int) -> str:
    if not count:
        return ""
    return (
        f" Of {words.count(count, 'rebalance')} only the end is known: that is all that a cluster's own log tells; "
        "kgctl's broker tells when they began, why, and what was refused."
    )


def _rebalance_row(one: Rebalance) -> list[Cell]:
    cause = ": ".join(words.name(text) for text in (one.cause, one.reason) if text) or words.NONE
    return [
        Cell(words.moment(one.ended_ms), "when"),
        _name(one.group),
        Cell(words.NONE if one.generation is None else str(one.generation)),
        Cell(words.duration(one.duration_ms)),
        Cell(_text(cause), "wide"),
        Cell(words.number(one.joined)),
        Cell(words.number(one.left)),
        Cell(words.number(one.members)),
        Cell(words.number(one.moved_parts)),
        Cell(words.ratio(one.skew)),
        Cell(words.number(one.commits_rejected)),
    ]


def _tables(facts: Facts) -> list[str]:
    from kgctl.pipelines.schemas import TABLES

    rows = [
        [Cell(f"<code>{name}</code>"), Cell(words.number(count)), Cell(_text(TABLES[name].summary), "wide")]
        for name, count in facts.rows.items()
    ]
    return [
        "<section><h2>What this was made from</h2>",
        _table("Tables", [Heading("Table"), Heading("Rows", True), Heading("What it holds")], rows),
        _note(
            f"Cluster: {words.name(facts.cluster)}. Period: "
            f"{words.period(facts.first_ms, facts.last_ms)}. A number that is not known is shown as -, never as 0."
        ),
        "</section>",
    ]


def _figure(picture: Picture) -> str:
    svg = as_svg(picture.draw, picture.height_in, picture.described)
    return f'<figure class=scroll tabindex=0 role=group aria-label="Figure, scrolls sideways">{svg}</figure>'


def _table(caption: str, headings: Sequence[Heading], rows: Sequence[Sequence[Cell]]) -> str:
    head = "".join(f"<th scope=col{' class=right' if one.right else ''}>{_text(one.text)}</th>" for one in headings)
    lines = []
    for row in rows:
        cells = []
        for number, (cell, heading) in enumerate(zip(row, headings, strict=True)):
            tag = "th scope=row" if number == 0 else "td"
            kind = " ".join(filter(None, ("right" if heading.right else "", cell.kind)))
            styled = f' class="{kind}"' if kind else ""
            cells.append(f"<{tag}{styled}>{cell.html}</{tag[:2]}>")
        lines.append(f"<tr>{''.join(cells)}</tr>")
    return (
        f'<div class=scroll tabindex=0 role=group aria-label="{escape(caption)}"><table><caption>{_text(caption)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>" + "\n".join(lines) + "</tbody></table></div>"
    )


def _more(count: int, one: str, which: str, which_many: str | None = None) -> str:
    if count <= 0:
        return ""
    return f"<p class=more>And {words.count(count, f'more {one}')} {which if count == 1 else which_many or which}.</p>"


def _name(text: str) -> Cell:
    return Cell(f"<bdi>{_text(words.name(text))}</bdi>", "name")


def _verdict(status: str) -> str:
    said = words.VERDICTS.get(status, ("", ""))[0]
    return f'<span class="verdict {escape(status)}">{_text(status)}</span> {_text(said)}'


def _p(text: str) -> str:
    return f"<p>{_text(text)}</p>"


def _note(text: str) -> str:
    return f"<p class=note>{_text(text)}</p>"


def _none(text: str) -> str:
    return f"<p class=none>{_text(text)}</p>"


def _text(text: str) -> str:
    return escape(text)
