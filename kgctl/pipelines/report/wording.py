"""How the report puts numbers, times and names, and the sentences at its top."""

from __future__ import annotations

from datetime import UTC, datetime

from kgctl.model.health import Health
from kgctl.pipelines.report.rows import Facts, GroupFacts, HealthSummary, WorstGroup
from kgctl.render.fitting import shorten
from kgctl.render.table import printable

NONE = "-"
MEANINGS = {
    Health.STOPPED: "Records are waiting, and there has been no commit for longer than usual: the consumer is probably gone.",
    Health.STALLED: "Records are waiting; the group still commits, but its offset does not advance.",
    Health.REWOUND: "The committed offset moved back, so records are read again.",
    Health.LAGGING: "The offset advances, but the lag never falls.",
    Health.UNKNOWN: "There is not enough data.",
    Health.OK: "The consumer commits, and there was no lag at one of the last commits, or the lag falls.",
}
MAX_NAME_COLUMNS = 80
END_OF_CALENDAR_MS = 253_402_300_800_000


def number(value: float | None) -> str:
    return NONE if value is None else f"{value:,.0f}"


def size(value: float | None) -> str:
    """Bytes, in binary units."""
    if value is None:
        return NONE
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if abs(value) < 1024 or unit == "TiB":
            return f"{value:,.0f} {unit}" if unit == "B" else f"{value:,.1f} {unit}"
        value /= 1024
    raise AssertionError("unreachable")


def plain(value: int | None) -> str:
    """A number that is a name, without separators."""
    return NONE if value is None else str(value)


def rate(value: float | None) -> str:
    if value is None:
        return NONE
    return (
        f"{value:,.0f}/s" if abs(value) >= 100 or value == 0 else f"{value:,.1f}/s" if abs(value) >= 0.1 else "<0.1/s"
    )


def share(value: float | None) -> str:
    return NONE if value is None else f"{value:.0%}"


def ratio(value: float | None) -> str:
    return NONE if value is None else f"{value:.2f}"


def seconds(value: float | None) -> str:
    return duration(None if value is None else value * 1000)


def duration(ms: float | None) -> str:
    """At most two units: 850 ms, 12.3 s, 4 min 5 s, 3 h 20 min, 2 d 4 h."""
    if ms is None:
        return NONE
    if ms < 1000:
        return f"{ms:.0f} ms"
    if ms < 59_950:
        return f"{ms / 1000:.1f} s"
    s = round(ms / 1000)
    for unit, below, size, smaller, smaller_size in (
        ("min", 3600, 60, "s", 1),
        ("h", 86_400, 3600, "min", 60),
        ("d", 36_500 * 86_400, 86_400, "h", 3600),
    ):
        if s < below:
            rest = s % size // smaller_size
            return f"{s // size} {unit}" + (f" {rest} {smaller}" if rest else "")
    return "over 100 years"


def moment(ms: int | None) -> str:
    """In UTC, to the second; a time outside the calendar is unknown."""
    if ms is None or not 0 <= ms < END_OF_CALENDAR_MS:
        return NONE
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")


def period(first_ms: int | None, last_ms: int | None) -> str:
    if first_ms is None or last_ms is None:
        return NONE
    first, last = moment(first_ms), moment(last_ms)
    if first == last:
        return f"{first} UTC"
    end = last[11:] if first[:10] == last[:10] else last
    return f"{first} to {end} UTC"


def name(text: str | None) -> str:
    """A name from the cluster, without control characters and no longer than a line."""
    return NONE if text is None else shorten(printable(text), MAX_NAME_COLUMNS, "\u2026")


def counted(amount: int, one: str, many: str | None = None) -> str:
    return f"{amount:,} {one if amount == 1 else many or one + 's'}"


def summary(facts: Facts) -> list[str]:
    """The sentences at the top, without markup."""
    if not facts.groups:
        return ["Nothing to report: the tables hold no consumer group yet."]
    preposition = "at" if moment(facts.first_ms) == moment(facts.last_ms) else "from"
    when = period(facts.first_ms, facts.last_ms)
    sentences = [f"The report covers {counted(facts.groups, 'consumer group')} {preposition} {when}."]
    sentences += _health(facts.health) if facts.health else ["Their health is not known yet."]
    if facts.lag_map is not None:
        behind = facts.behind_groups
        sentences.append(
            f"{counted(behind, 'group')} {'has' if behind == 1 else 'have'} lag." if behind else "No group has lag."
        )
    if facts.rebalances:
        found = facts.rebalances
        sentences.append(
            f"There {'was' if found.count == 1 else 'were'} {counted(found.count, 'rebalance')} in "
            f"{counted(found.groups, 'group')}."
        )
    return sentences


def group_summary(facts: GroupFacts) -> list[str]:
    """The sentences at the top of the page of a group."""
    if facts.status is None:
        sentences = ["The health of the group is not known."]
    elif not facts.unhealthy:
        sentences = ["The group is healthy."]
    else:
        judged = sum(row.status is not None for row in facts.partitions)
        worst = WorstGroup(facts.group, facts.status, facts.unhealthy, judged, None)
        sentences = [f"The group is {facts.status}: {_partitions(worst)}."]
    if facts.lag is not None:
        sentences.append(f"It has a lag of {counted(facts.lag, 'record')}." if facts.lag else "It has no lag.")
    if facts.rebalances:
        sentences.append(
            f"There {'was' if facts.rebalances.count == 1 else 'were'} {counted(facts.rebalances.count, 'rebalance')}."
        )
    return sentences


def _health(health: HealthSummary) -> list[str]:
    if health.healthy == health.groups:
        return ["It is healthy." if health.groups == 1 else f"All {health.groups:,} groups with commits are healthy."]
    are = "is" if health.healthy == 1 else "are"
    sentences = [f"{health.healthy:,} of {counted(health.groups, 'group')} with commits {are} healthy."]
    worst = health.worst
    if worst is not None:
        lag = f", with a lag of {counted(worst.lag, 'record')}" if worst.lag else ""
        sentences.append(f"The worst is {name(worst.group)} ({worst.status}): {_partitions(worst)}{lag}.")
    return sentences


def _partitions(worst: WorstGroup) -> str:
    if worst.partitions == 1:
        return "its only partition is not healthy"
    if worst.unhealthy == worst.partitions:
        return f"none of its {worst.partitions:,} partitions is healthy"
    return f"{worst.unhealthy:,} of its {worst.partitions:,} partitions {'is' if worst.unhealthy == 1 else 'are'} not healthy"
