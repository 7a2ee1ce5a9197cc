"""Delivers the verdicts of a run to its sinks. A sink that fails stops neither the run nor the other sinks."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from kgctl.client.net.errors import KgctlError
from kgctl.exit_codes import PARTLY_FAILED
from kgctl.pipelines.progress import Progress
from kgctl.pipelines.results.limits import check_verdicts
from kgctl.pipelines.results.notices import Ledger, Notice
from kgctl.pipelines.results.tables import verdict_tables
from kgctl.pipelines.results.targets import Target, parse_target
from kgctl.pipelines.results.verdicts import Verdict, read_verdicts
from kgctl.pipelines.settings import RunSettings
from kgctl.pipelines.tables.newest import measured_ms

CLIENT_ID = "kgctl-sink"
_STEP = "sinks"

Emit = Callable[[Progress], None]


class SinksFailed(KgctlError):
    """The tables are complete, but not all sinks have got the verdicts."""

    name = "SINKS_FAILED"
    exit_code = PARTLY_FAILED


class Delivery:
    """The sinks of one run. `stop` ends waits between attempts."""

    def __init__(self, settings: RunSettings, cluster: str, emit: Emit, stop: threading.Event) -> None:
        self._settings, self._cluster, self._emit, self._stop = settings, cluster, emit, stop
        self._targets = tuple(map(parse_target, settings.sinks))
        self._tables = verdict_tables(settings.jobs)
        self._failing: set[Target] = set()

    def after_round(self) -> None:
        """Deliver the newest verdicts. What fails is one note, when it begins; it is sent in a later round."""
        if not self._targets:
            return
        verdicts = self._verdicts()
        for target in self._targets:
            try:
                count = self._deliver(target, verdicts)
            except (KgctlError, OSError) as error:
                if target not in self._failing:
                    text = f"{target.label} failed: {_words(error)}; its verdicts are sent in the next round or run"
                    self._emit(Progress("note", text))
                self._failing.add(target)
                continue
            if target in self._failing or (count and not self._settings.follow):
                self._emit(Progress("done", f"{target.label}: {_counted(count, target)}", job=_STEP))
            self._failing.discard(target)

    def conclude(self) -> None:
        """The end of a run without --follow. Raises VerdictReached if --fail-on says so, else SinksFailed."""
        if self._settings.fail_on is not None:
            check_verdicts(self._verdicts(), self._tables, self._settings.fail_on)
        if self._failing:
            raise SinksFailed(
                f"{len(self._failing)} of {len(self._targets)} sinks failed; the tables are complete, and the next run "
                "sends their verdicts again"
            )

    def _verdicts(self) -> list[Verdict]:
        return [one for table in self._tables for one in read_verdicts(Path(self._settings.out), table)]

    def _deliver(self, target: Target, verdicts: Sequence[Verdict]) -> int:
        """How many verdicts the sink got."""
        if target.kind == "prometheus":
            from kgctl.pipelines.results.prometheus import write_metrics

            out = Path(self._settings.out)
            measured = {table.name: measured_ms(out, table) for table in self._tables}
            write_metrics(Path(target.where), verdicts, self._tables, self._cluster, measured)
            return len(verdicts)
        is_topic = target.kind == "kafka"
        ledger = Ledger(Path(self._settings.out), target, self._cluster, wants_healthy=is_topic)
        tables = [table.name for table in self._tables]
        notices = ledger.due(verdicts, tables, round(self._settings.repeat_s * 1000), _now_ms())
        for some in self._send(target, notices):
            ledger.sent(some, _now_ms())
        return len(notices)

    def _send(self, target: Target, notices: Sequence[Notice]) -> Iterator[Sequence[Notice]]:
        """Yields what the sink has accepted."""
        if not notices:
            return
        if target.kind == "kafka":
            from kgctl.pipelines.results.kafka import send_records

            topic = send_records(self._settings.connection(CLIENT_ID), target.where, notices, self._cluster)
            if topic.was_created:
                self._emit(Progress("note", topic.creation()))
            yield notices
            return
        from kgctl.pipelines.results.webhook import Limits, post

        yield from post(
            target.where, self._settings.webhook_headers, notices, self._cluster, Limits(pause=self._stop.wait)
        )


def _words(error: Exception) -> str:
    return str(error) if isinstance(error, KgctlError) else str(getattr(error, "strerror", None) or error)


def _counted(count: int, target: Target) -> str:
    verb = "written" if target.kind == "prometheus" else "sent"
    return f"{count:,} verdict{'s' * (count != 1)} {verb}"


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
