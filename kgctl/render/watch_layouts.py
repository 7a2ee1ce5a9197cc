"""The tables of what kgctl judges: lag in time, findings of doctors."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from kgctl.model.cluster_view import FrameGroup, FramePartition
from kgctl.model.conditions import ConditionRow
from kgctl.model.events import EventRow
from kgctl.model.findings import ClusterFinding, Finding, RuleRow
from kgctl.model.lag import Confidence, LagRow
from kgctl.render.columns import RELUCTANTLY, Column, Layout, Shown, Tone
from kgctl.render.group_layouts import HEALTH_TONES
from kgctl.render.measure import Measure
from kgctl.render.parts import ERROR, ID, NAME, SENTENCE
from kgctl.watch.figures import rate, span


def _measured(field: str, text: Callable[[float], str]) -> Callable[[Any], Measure | None]:
    """The value as text, with a ~ before an estimate."""

    def of(row: Any) -> Measure | None:
        value = getattr(row, field)
        if value is None:
            return None
        return Measure(value, ("~" if row.confidence.get(field) is Confidence.LOW else "") + text(value))

    return of


def _span_ms(milliseconds: float) -> str:
    return span(milliseconds / 1000) if milliseconds else "0 s"


def _span_s(seconds: float) -> str:
    return span(seconds) if seconds else "0 s"


def _measured_ms(field: str) -> Callable[[Any], Measure | None]:
    def of(row: Any) -> Measure | None:
        value = getattr(row, field)
        return None if value is None else Measure(value, _span_ms(value))

    return of


def _values(row: Any) -> str | None:
    """The values of a condition's variables as one text: times are durations."""
    from kgctl.conditions.durations import text_of_ms

    if row.values is None:
        return None
    texts = (
        f"{name}={'-' if value is None else text_of_ms(value) if name in _TIMED else value}"
        for name, value in row.values.items()
    )
    return " ".join(texts)


def _rate(per_s: float) -> str:
    return rate(per_s) if per_s else "0/s"


# The variables of conditions that are durations in milliseconds.
_TIMED = ("commit_age", "time_lag")
_TIMES = (
    Column("LAG", "lag", 8),
    Column("IN", _measured("rate_in", _rate), 8, rank=3),
    Column("OUT", _measured("rate_out", _rate), 8, rank=4),
    Column("TIME-LAG", _measured("time_lag_ms", _span_ms), 8),
    Column("BEHIND", _measured("span_ms", _span_ms), 8, Shown.WIDE),
    Column("ETA", _measured("eta_s", _span_s), 8, rank=RELUCTANTLY),
    Column("DELETED-IN", _measured("headroom_ms", _span_ms), 10, rank=RELUCTANTLY + 1),
    SENTENCE("NOTE", "note", shown=Shown.IF_ANY),
    ERROR,
)


def _moment(row: Any) -> datetime:
    return datetime.fromtimestamp(row.timestamp / 1000, UTC)


def _time(row: Any) -> str:
    return _moment(row).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _brief_time(row: Any) -> str:
    return f"{_moment(row):%m-%d %H:%M:%S}Z"


def _cause(row: Any) -> str | None:
    return f"{row.cause} ({row.reason})" if row.reason else row.cause


_EVENTS = {"stable": Tone.GOOD, "rebalance_started": Tone.CHANGING, "deleted": Tone.BAD, "empty": Tone.QUIET}
_SEVERITIES = {
    "error": Tone.BAD,
    "warning": Tone.CHANGING,
    "ok": Tone.GOOD,
    "info": Tone.QUIET,
    "unknown": Tone.QUIET,
}
_SEVERITY = Column("SEVERITY", "severity", 8, tones=_SEVERITIES)


def _advised(row: Any) -> str | None:
    """The evidence, and what to do about it: a column of its own would be left out in narrow terminals."""
    return f"{row.evidence}. Advice: {row.advice}" if row.advice else row.evidence


WATCH_LAYOUTS: dict[str, Layout] = {
    "group-lag": Layout(
        LagRow,
        (
            NAME("GROUP", "group", 15),
            NAME("TOPIC", "topic", 15),
            Column("PARTITION", "partition", 9),
            Column("LOG-START-OFFSET", "log_start", 16, Shown.WIDE),
            Column("CURRENT-OFFSET", "committed", 14, Shown.WIDE),
            Column("LOG-END-OFFSET", "log_end", 14, Shown.WIDE),
            ID("CONSUMER-ID", "consumer_id", 15, Shown.WIDE),
            *_TIMES,
        ),
        block="group",
    ),
    "group-lag-sums": Layout(
        LagRow,
        (
            NAME("GROUP", "group", 15),
            NAME("TOPIC", "topic", 15, Shown.IF_ANY),
            ID("CONSUMER-ID", "consumer_id", 15, Shown.IF_ANY),
            ID("CLIENT-ID", "client_id", 15, Shown.WIDE_IF_ANY),
            Column("#PARTITIONS", "partitions", 11, rank=2),
            *_TIMES,
        ),
    ),
    "ui-groups": Layout(
        FrameGroup,
        (
            NAME("GROUP", "group", 15),
            Column("STATE", "state", 10),
            Column("#MEMBERS", "members", 8),
            Column("LAG", "lag", 8),
            Column("VERDICT", "verdict", 15, tones=HEALTH_TONES),
            SENTENCE("REASON", "verdict_reason", 20),
            ERROR,
        ),
    ),
    "ui-partitions": Layout(
        FramePartition,
        (
            NAME("GROUP", "group", 15),
            NAME("TOPIC", "topic", 15),
            Column("PARTITION", "partition", 9),
            Column("LAG", "lag", 8),
            ID("CONSUMER-ID", "consumer_id", 15),
            Column("VERDICT", "verdict", 15, tones=HEALTH_TONES),
            ERROR,
        ),
    ),
    "group-conditions": Layout(
        ConditionRow,
        (
            NAME("GROUP", "group", 15),
            Column("MET", lambda row: "yes" if row.is_met else "no", 3, tones={"yes": Tone.GOOD, "no": Tone.BAD}),
            Column("WAITED", _measured_ms("waited_ms"), 8, Shown.IF_ANY),
            Column("HELD", _measured_ms("held_ms"), 8, Shown.WIDE_IF_ANY),
            SENTENCE("VALUES", _values, 20),
            SENTENCE("FAILED", lambda row: "; ".join(row.failed) or None, 20, Shown.IF_ANY, share=2),
            SENTENCE("CONDITION", "condition", 20, Shown.WIDE),
            ERROR,
        ),
    ),
    "group-findings": Layout(
        Finding,
        (
            NAME("GROUP", "group", 15),
            Column("VERDICT", "verdict", 15, tones=HEALTH_TONES),
            _SEVERITY,
            Column("RULE", "rule", 20),
            SENTENCE("EVIDENCE", _advised, 20),
            ERROR,
        ),
    ),
    "events": Layout(
        EventRow,
        (
            Column("TIME", _time, 24, brief=_brief_time),
            NAME("GROUP", "group", 20),
            Column("EVENT", "event", 17, tones=_EVENTS),
            Column("GENERATION", "generation", 10, rank=RELUCTANTLY),
            Column("MEMBERS", "members", 7),
            Column("JOINED", "joined_count", 6, rank=2),
            Column("LEFT", "left_count", 4, rank=3),
            Column("MOVED", "partitions_moved", 5, Shown.WIDE),
            Column("DURATION-MS", "duration_ms", 11, Shown.WIDE),
            SENTENCE("CAUSE", _cause, 15),
        ),
    ),
    "doctor-rules": Layout(
        RuleRow,
        (
            Column("RULE", "rule", 20),
            _SEVERITY,
            SENTENCE("LOOKS-AT", "looks_at", 20),
            SENTENCE("ADVICE", "advice"),
        ),
    ),
    "cluster-findings": Layout(
        ClusterFinding,
        (
            Column("CHECK", "check", 12),
            ID("SUBJECT", "subject", 15),
            _SEVERITY,
            SENTENCE("EVIDENCE", _advised, 20),
            ERROR,
        ),
    ),
}
