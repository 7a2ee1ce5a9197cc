"""The tables of what kgctl judges: lag in time, findings of doctors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kgctl.model.findings import ClusterFinding, Finding, RuleRow
from kgctl.model.lag import Confidence, LagRow
from kgctl.render.columns import RELUCTANTLY, Column, Layout, Shown, Tone
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


def _rate(per_s: float) -> str:
    return rate(per_s) if per_s else "0/s"


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

_SEVERITIES = {
    "error": Tone.BAD,
    "warning": Tone.CHANGING,
    "ok": Tone.GOOD,
    "info": Tone.QUIET,
    "unknown": Tone.QUIET,
}
_VERDICTS = {
    "OK": Tone.GOOD,
    "LAGGING": Tone.CHANGING,
    "REBALANCING": Tone.CHANGING,
    "STALLED": Tone.BAD,
    "STOPPED": Tone.BAD,
    "DEAD MEMBERS": Tone.BAD,
}
_SEVERITY = Column("SEVERITY", "severity", 8, tones=_SEVERITIES)

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
    "group-findings": Layout(
        Finding,
        (
            NAME("GROUP", "group", 15),
            Column("VERDICT", "verdict", 11, tones=_VERDICTS),
            _SEVERITY,
            Column("RULE", "rule", 20),
            SENTENCE("EVIDENCE", "evidence", 20, share=2),
            SENTENCE("ADVICE", "advice", shown=Shown.IF_ANY, rank=1),
            ERROR,
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
            SENTENCE("EVIDENCE", "evidence", 20, share=2),
            SENTENCE("ADVICE", "advice", shown=Shown.IF_ANY),
            ERROR,
        ),
    ),
}
