"""What a sink gets: changes once, faults again, nothing twice with two ids."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from kgctl.pipelines.results.notices import Ledger, Notice
from kgctl.pipelines.results.targets import Target
from kgctl.pipelines.results.verdicts import Verdict

HOUR = 3_600_000
TARGET = Target("webhook", "https://example.org/x")


def verdict(group: str, status: str, at_ms: int) -> Verdict:
    return Verdict("health", group, at_ms, status, 1, {status: 1}, None, ())


class Sink:
    """A ledger that is opened for each evaluation, as by a run each; it delivers unless told otherwise."""

    def __init__(self, out: Path, *, wants_healthy: bool = False) -> None:
        self.out, self.wants_healthy = out, wants_healthy

    def at(self, ms: int, *, fails: bool = False, **statuses: str) -> list[Notice]:
        ledger = Ledger(self.out, TARGET, "c", wants_healthy=self.wants_healthy)
        verdicts = [verdict(group, status, ms) for group, status in statuses.items()]
        notices = ledger.due(verdicts, ["health"], 4 * HOUR, ms)
        if not fails:
            ledger.sent(notices, ms)
        return notices


def shown(notices: list[Notice]) -> list[tuple[str, str | None, str, int]]:
    return [(one.verdict.group, one.entry.previous, one.verdict.status, one.entry.number) for one in notices]


def test_a_change_is_sent_once_and_recovery_too(tmp_path: Path) -> None:
    sink = Sink(tmp_path)
    assert shown(sink.at(0, a="OK", b="STALLED")) == [("b", None, "STALLED", 0)]
    assert sink.at(HOUR, a="OK", b="STALLED") == []
    assert shown(sink.at(2 * HOUR, a="LAGGING", b="OK")) == [("a", "OK", "LAGGING", 0), ("b", "STALLED", "OK", 0)]
    assert sink.at(3 * HOUR, a="LAGGING", b="OK") == []


def test_a_topic_gets_groups_that_are_healthy_from_the_start(tmp_path: Path) -> None:
    sink = Sink(tmp_path, wants_healthy=True)
    assert shown(sink.at(0, a="OK")) == [("a", None, "OK", 0)]
    assert sink.at(9 * HOUR, a="OK") == []


def test_a_fault_is_repeated_and_unknown_is_not(tmp_path: Path) -> None:
    sink = Sink(tmp_path)
    first = sink.at(0, a="STALLED", b="UNKNOWN")
    assert [one.verdict.group for one in first] == ["a", "b"]
    assert sink.at(4 * HOUR - 1, a="STALLED", b="UNKNOWN") == []
    again = sink.at(4 * HOUR, a="STALLED", b="UNKNOWN")
    assert shown(again) == [("a", None, "STALLED", 1)]
    assert again[0].entry.since_ms == 0
    assert again[0].id != first[0].id


def test_what_was_not_delivered_is_sent_again_with_its_id(tmp_path: Path) -> None:
    sink = Sink(tmp_path)
    (first,) = sink.at(0, fails=True, a="STALLED")
    (second,) = sink.at(HOUR, fails=True, a="STALLED")
    (third,) = sink.at(2 * HOUR, a="STALLED")
    assert first.id == second.id == third.id
    assert third.entry.since_ms == 0
    assert sink.at(3 * HOUR, a="STALLED") == []


def test_a_fault_of_a_group_that_is_gone_is_resolved_once(tmp_path: Path) -> None:
    sink = Sink(tmp_path)
    sink.at(0, a="STALLED", b="OK")
    (first,) = sink.at(HOUR, fails=True)
    (second,) = sink.at(2 * HOUR)
    assert shown([second]) == [("a", "STALLED", "OK", 0)]
    assert (second.id, second.verdict.at_ms, second.verdict.judged) == (first.id, HOUR, 0)
    assert sink.at(3 * HOUR) == []
    assert shown(sink.at(4 * HOUR, a="STALLED")) == [("a", None, "STALLED", 0)]


def test_a_run_that_does_not_judge_a_table_resolves_nothing_in_it(tmp_path: Path) -> None:
    sink = Sink(tmp_path)
    sink.at(0, a="STALLED")
    ledger = Ledger(tmp_path, TARGET, "c", wants_healthy=False)
    assert ledger.due([], ["anomalies"], 4 * HOUR, 9 * HOUR) == []
    assert sink.at(HOUR, a="STALLED") == []


def test_a_damaged_ledger_loses_no_fault(tmp_path: Path) -> None:
    sink = Sink(tmp_path)
    sink.at(0, a="STALLED")
    (path,) = (tmp_path / "_sinks").iterdir()
    path.write_bytes(b"{")
    assert shown(sink.at(HOUR, a="STALLED")) == [("a", None, "STALLED", 0)]


@given(st.lists(st.tuples(st.sampled_from(["OK", "LAGGING", "STALLED", "UNKNOWN"]), st.booleans()), max_size=12))
def test_a_reader_that_drops_repeated_ids_always_ends_with_the_newest_status(
    tmp_path_factory: object, history: list[tuple[str, bool]]
) -> None:
    sink = Sink(tmp_path_factory.mktemp("sink"), wants_healthy=True)  # type: ignore[attr-defined]
    seen: dict[str, str] = {}
    last = None
    for minute, (status, fails) in enumerate(history):
        for notice in sink.at(minute * HOUR, fails=fails, a=status):
            if not fails:
                assert seen.setdefault(notice.id, status) == status
                last = status
        if not fails:
            assert last == status
