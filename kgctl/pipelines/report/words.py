"""How the report says things: numbers, times, verdicts and the sentences at its top, for those who never saw Spark."""

from __future__ import annotations

from datetime import UTC, datetime

from kgctl.pipelines.report.rows import Facts, Health, WorstGroup
from kgctl.render.fitting import shorten
from kgctl.render.table import printable

NONE = "-"
VERDICTS = {
    "STOPPED": ("stopped", "No commit for longer than usual, with records waiting: the consumer is probably gone."),
    "STALLED": ("stalled", "It still commits, but the position does not move while records wait."),
    "REWOUND": ("went back", "The committed position went back: records are read again."),
    "LAGGING": ("falling behind", "It moves, but the number of waiting records never falls."),
    "UNKNOWN": ("not known", "Too little was seen to judge."),
    "OK": ("healthy", "It had read everything at some time within its last commits, or its lag falls."),
}
MOST_NAME_COLUMNS = 80
END_OF_CALENDAR_MS = 253_402_300_800_000


def number(value: float | None) -> str:
    return NONE if value is None else f"{value:,.0f}"


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


def duration(ms: float | None) -> str:
    """Two units at most: 850 ms, 12.3 s, 4 min 5 s, 3 h 20 min, 2 d 4 h."""
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
    """In UTC, to the second; a time that no calendar has is not known."""
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
    """A name from the cluster: nothing in it acts, and it is not longer than a line."""
    return NONE if text is None else shorten(printable(text), MOST_NAME_COLUMNS, "\u2026")


def count(amount: int, one: str, many: str | None = None) -> str:
    return f"{amount:,} {one if amount == 1 else many or one + 's'}"


def summary(facts: Facts) -> list[str]:
    """The sentences at the top, without markup."""
    if not facts.groups:
        return ["Nothing to report: the tables hold no consumer group yet."]
    seen = f"{count(facts.groups, 'consumer group')} {'was' if facts.groups == 1 else 'were'} seen"
    said = [
        f"{seen} from {period(facts.first_ms, facts.last_ms)}."
        if _long(facts)
        else f"{seen} at {period(facts.first_ms, facts.last_ms)}."
    ]
    said += (
        _health(facts.health)
        if facts.health
        else ["It has not been judged yet." if facts.groups == 1 else "None of them has been judged yet."]
    )
    if facts.lag_map is not None:
        behind = facts.behind_groups
        said.append(
            f"{count(behind, 'group')} {'has' if behind == 1 else 'have'} records waiting."
            if behind
            else "No group has records waiting."
        )
    if facts.rebalances:
        found = facts.rebalances
        said.append(
            f"There were {count(found.count, 'rebalance')} in {count(found.groups, 'group')}."
            if found.count != 1
            else "There was 1 rebalance."
        )
    return said


def _health(health: Health) -> list[str]:
    if health.healthy == health.groups:
        return ["It is healthy." if health.groups == 1 else f"All {health.groups:,} that were judged are healthy."]
    said = [f"{health.healthy:,} of {count(health.groups, 'group')} {'is' if health.healthy == 1 else 'are'} healthy."]
    worst = health.worst
    if worst is not None:
        which, waiting = VERDICTS[worst.status][0], f", {count(worst.lag, 'record')} waiting" if worst.lag else ""
        said.append(f"Worst is {name(worst.group)} ({which}): {_bad_parts(worst)}{waiting}.")
    return said


def _bad_parts(worst: WorstGroup) -> str:
    if worst.partitions == 1:
        return "its one partition is not healthy"
    if worst.bad == worst.partitions:
        return f"none of its {worst.partitions:,} partitions is healthy"
    return f"{worst.bad:,} of its {worst.partitions:,} partitions {'is' if worst.bad == 1 else 'are'} not healthy"


def _long(facts: Facts) -> bool:
    return moment(facts.first_ms) != moment(facts.last_ms)
