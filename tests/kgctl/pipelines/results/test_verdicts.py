"""The verdict about a group, and the limit of --fail-on."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import pytest

from kgctl.exit_codes import exit_code_of
from kgctl.model.health import EVALUATED, FAULTS
from kgctl.pipelines.results.limits import VerdictReached, check_verdicts
from kgctl.pipelines.results.tables import statuses_of
from kgctl.pipelines.results.verdicts import read_verdicts
from kgctl.pipelines.schemas.group_facts import ANOMALIES
from kgctl.pipelines.schemas.groups import HEALTH
from tests.kgctl.pipelines.report.tables import commit
from tests.kgctl.pipelines.results.evaluations import MINUTE, NOON, evaluate


def test_a_group_is_as_healthy_as_its_worst_partition_at_the_newest_evaluation(tmp_path: Path) -> None:
    evaluate(tmp_path, 0, orders="STOPPED", gone="STALLED")
    evaluate(tmp_path, 1, orders="OK LAGGING STALLED", billing="OK OK")
    billing, orders = read_verdicts(tmp_path, HEALTH)
    assert (billing.group, billing.status, billing.lag, billing.unhealthy, billing.details) == (
        "billing",
        "OK",
        0,
        0,
        (),
    )
    assert (orders.group, orders.status, orders.at_ms) == ("orders", "STALLED", NOON + MINUTE)
    assert (orders.judged, orders.unhealthy, orders.lag) == (3, 2, 23)
    assert [(row["part"], row["status"], row["reasons"]) for row in orders.details] == [
        (2, "STALLED", ["why STALLED"]),
        (1, "LAGGING", ["why LAGGING"]),
    ]


def test_an_unknown_lag_is_not_zero_and_a_word_of_a_newer_version_is_little_known(tmp_path: Path) -> None:
    commit(tmp_path, "health", [{"group": "g", "at": NOON, "status": word} for word in ("OK", "DREAMING")])
    (found,) = read_verdicts(tmp_path, HEALTH)
    assert (found.lag, found.status, found.unhealthy) == (None, "DREAMING", 1)
    with pytest.raises(VerdictReached):
        check_verdicts([found], [HEALTH], "UNKNOWN")
    check_verdicts([found], [HEALTH], "LAGGING")


def test_a_group_is_anomalous_until_the_last_of_its_anomalies_has_ended(tmp_path: Path) -> None:
    def event(minute: int, group: str, metric: str, event: str) -> dict[str, object]:
        at = NOON + minute * MINUTE
        return {"group": group, "metric": metric, "event": event, "at": at, "value": 9.0, "reason": f"{metric} is high"}

    rows = [event(0, "a", "lag", "started"), event(1, "a", "rebalances", "started"), event(2, "a", "lag", "ended")]
    commit(tmp_path, "anomalies", [*rows, event(2, "b", "lag", "ended"), event(2, "b", "lag", "started")])
    a, b = read_verdicts(tmp_path, ANOMALIES)
    assert (a.status, a.judged, a.unhealthy, a.at_ms) == ("ANOMALOUS", 2, 1, NOON + 2 * MINUTE)
    assert a.details == ({"metric": "rebalances", "value": 9.0, "reasons": ["rebalances is high"]},)
    assert b.status == "ANOMALOUS"
    with pytest.raises(VerdictReached, match=r"^2 groups are ANOMALOUS or worse: a ANOMALOUS \(rebalances\); b "):
        check_verdicts([a, b], [HEALTH, ANOMALIES], "ANOMALOUS")
    check_verdicts([a, b], [HEALTH, ANOMALIES], "UNKNOWN")
    commit(
        tmp_path,
        "anomalies",
        [event(3, group, metric, "ended") for group in "ab" for metric in ("lag", "rebalances")],
        "2",
    )
    assert [one.status for one in read_verdicts(tmp_path, ANOMALIES)] == ["OK", "OK"]


def test_when_the_last_group_is_gone_there_is_no_verdict(tmp_path: Path) -> None:
    evaluate(tmp_path, 0, orders="STOPPED")
    evaluate(tmp_path, 1)
    assert read_verdicts(tmp_path, HEALTH) == []


def test_without_an_evaluation_there_is_no_verdict(tmp_path: Path) -> None:
    assert read_verdicts(tmp_path, HEALTH) == []


@pytest.mark.parametrize("limit", EVALUATED[:-1])
def test_a_limit_is_reached_by_its_status_and_by_every_worse_one(tmp_path: Path, limit: str) -> None:
    for number, status in enumerate(EVALUATED):
        out = tmp_path / str(number)
        evaluate(out, 0, g=str(status))
        is_reached = number <= EVALUATED.index(limit)  # type: ignore[arg-type]
        with pytest.raises(VerdictReached) if is_reached else nullcontext():
            check_verdicts(read_verdicts(out, HEALTH), [HEALTH], str(limit))


def test_every_fault_that_an_evaluation_can_find_is_a_limit() -> None:
    assert set(statuses_of([HEALTH])) == (set(EVALUATED) & FAULTS)


def test_the_message_names_the_worst_groups_first(tmp_path: Path) -> None:
    many = {f"g{number}": "LAGGING" for number in range(5)}
    evaluate(tmp_path, 0, orders="OK STALLED", billing="STOPPED", fine="OK", **many)
    with pytest.raises(VerdictReached) as raised:
        check_verdicts(read_verdicts(tmp_path, HEALTH), [HEALTH], "LAGGING")
    assert str(raised.value) == (
        "7 groups are LAGGING or worse: billing STOPPED (1 of 1 partition, lag 10); orders STALLED (1 of 2 partitions, "
        "lag 11); g0 LAGGING (1 of 1 partition, lag 10); g1 LAGGING (1 of 1 partition, lag 10); g2 LAGGING (1 of 1 "
        "partition, lag 10); and 2 more"
    )
    assert exit_code_of(raised.value) == 3
