"""Runs with sinks: a broker's topic, a Prometheus file, a webhook; each of them may fail."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from broker.local import LocalBroker
from kgctl.exit_codes import exit_code_of
from kgctl.pipelines.results.delivery import SinksFailed
from kgctl.pipelines.results.limits import VerdictReached
from tests.harness.commandline import Kgctl
from tests.harness.webhook_server import WebhookServer
from tests.kgctl.pipelines.report.tables import commit
from tests.kgctl.pipelines.report.test_page import NASTY
from tests.kgctl.pipelines.results.evaluations import MINUTE, NOON, Run, evaluate


@pytest.fixture(scope="module")
def kgctl() -> Iterator[Kgctl]:
    with LocalBroker({"auto.create.topics.enable": "false"}) as broker:
        yield Kgctl(broker.bootstrap_servers)


def records(kgctl: Kgctl, topic: str) -> list[dict[str, object]]:
    consumed = kgctl("consume", topic, "--from-beginning", "--until-end", "--json")
    assert consumed.exit_code == 0, consumed.stderr
    return [json.loads(line) for line in consumed.stdout.splitlines()]


def test_a_topic_has_the_newest_status_of_each_group_under_its_key(kgctl: Kgctl, tmp_path: Path) -> None:
    assert kgctl("topics", "create", "verdicts", "--partitions", "3").exit_code == 0
    sink = {"bootstrap": str(kgctl.bootstrap)}
    evaluate(tmp_path, 0, orders="OK STALLED", billing="OK")
    Run(tmp_path, "kafka:verdicts", **sink)
    evaluate(tmp_path, 1, orders="OK STALLED", billing="OK")
    Run(tmp_path, "kafka:verdicts", **sink)
    evaluate(tmp_path, 2, orders="OK OK", billing="OK")
    assert Run(tmp_path, "kafka:verdicts", **sink).notes == []
    found = records(kgctl, "verdicts")
    content = {(str(one["key"]), json.loads(str(one["value"]))["status"]) for one in found}
    assert content == {("orders", "STALLED"), ("billing", "OK"), ("orders", "OK")}
    newest = {str(one["key"]): one for one in found}
    assert newest["orders"]["timestamp"] == NOON + 2 * MINUTE
    for one in found:
        assert one["headers"] == [{"key": "id", "value": json.loads(str(one["value"]))["id"]}]


def test_a_topic_that_the_broker_creates_is_named(tmp_path: Path) -> None:
    evaluate(tmp_path, 0, orders="STALLED")
    with LocalBroker() as broker:
        notes = [Run(tmp_path, "kafka:verdicts", bootstrap=broker.bootstrap_servers).notes for _ in range(2)]
    assert notes == [["Topic 'verdicts' did not exist; the broker created it with 1 partition"], []]


def test_an_anomaly_has_a_key_beside_that_of_health(kgctl: Kgctl, tmp_path: Path) -> None:
    assert kgctl("topics", "create", "both").exit_code == 0
    evaluate(tmp_path, 0, orders="OK")
    row = {"group": "orders", "metric": "lag", "event": "started", "at": NOON, "value": 9.0, "reason": "lag is high"}
    commit(tmp_path, "anomalies", [row])
    path = tmp_path / "groups.prom"
    jobs = ("evaluate", "anomalies")
    assert Run(tmp_path, "kafka:both", f"prometheus:{path}", bootstrap=str(kgctl.bootstrap), jobs=jobs).notes == []
    content = {str(one["key"]): json.loads(str(one["value"]))["status"] for one in records(kgctl, "both")}
    assert content == {"orders": "OK", "anomalies:orders": "ANOMALOUS"}
    assert 'kgctl_group_anomalies_status{cluster="cluster-1",group="orders",status="ANOMALOUS"} 1.0' in path.read_text()


def test_no_two_verdicts_have_the_same_key(kgctl: Kgctl, tmp_path: Path) -> None:
    assert kgctl("topics", "create", "keys").exit_code == 0
    groups = ["orders", "anomalies:orders", "health:orders", "health:anomalies:orders", "a:b"]
    evaluate(tmp_path, 0, **dict.fromkeys(groups, "OK"))
    commit(tmp_path, "anomalies", [{"group": one, "metric": "lag", "event": "started", "at": NOON} for one in groups])
    jobs = ("evaluate", "anomalies")
    assert Run(tmp_path, "kafka:keys", bootstrap=str(kgctl.bootstrap), jobs=jobs).notes == []
    found = records(kgctl, "keys")
    keys = {(one["table"], one["group"]): row["key"] for row in found for one in [json.loads(str(row["value"]))]}
    assert len(set(keys.values())) == len(found) == 2 * len(groups)
    assert [keys["health", group] for group in groups] == [
        "orders",
        "health:anomalies:orders",
        "health:health:orders",
        "health:health:anomalies:orders",
        "a:b",
    ]


def test_a_topic_that_does_not_exist_is_one_note_and_its_verdicts_come_later(kgctl: Kgctl, tmp_path: Path) -> None:
    evaluate(tmp_path, 0, orders="STALLED")
    run = Run(tmp_path, "kafka:later", bootstrap=str(kgctl.bootstrap), follow=True)
    run.delivery.after_round()
    (note,) = run.notes
    assert note == (
        "kafka:later failed: topic 'later' does not exist, and the broker does not create it; its verdicts are sent in the "
        "next round or run"
    )
    assert kgctl("topics", "create", "later").exit_code == 0
    run.delivery.after_round()
    run.delivery.after_round()
    assert [one["key"] for one in records(kgctl, "later")] == ["orders"]


def test_a_prometheus_file_has_every_group_with_valid_names_and_labels(tmp_path: Path) -> None:
    path = tmp_path / "groups.prom"
    groups = {f'{name}\n"\\': "STALLED OK" for name in NASTY}
    evaluate(tmp_path, 0, **groups, fine="OK")
    evaluate(tmp_path, 1, **groups, fine="LAGGING")
    Run(tmp_path, f"prometheus:{path}")
    assert [one.name for one in tmp_path.iterdir() if one.is_file()] == ["groups.prom"]
    families = {family.name: family for family in text_string_to_metric_families(path.read_text())}
    assert {family.type for family in families.values()} == {"gauge"}
    status = families["kgctl_group_health_status"].samples
    assert {(one.labels["group"], one.labels["status"]) for one in status if one.value == 1} == {
        ("fine", "LAGGING"),
        *((group, "STALLED") for group in groups),
    }
    assert {one.labels["cluster"] for one in status} == {"cluster-1"}
    (at,) = families["kgctl_group_health_evaluation_timestamp_seconds"].samples
    assert at.value == (NOON + MINUTE) / 1000
    lag = {one.labels["group"]: one.value for one in families["kgctl_group_health_lag_records"].samples}
    assert lag["fine"] == 10


def test_a_prometheus_file_has_the_time_of_an_evaluation_without_groups(tmp_path: Path) -> None:
    path = tmp_path / "groups.prom"
    evaluate(tmp_path, 0, fine="OK")
    evaluate(tmp_path, 1)
    Run(tmp_path, f"prometheus:{path}")
    families = {family.name: family for family in text_string_to_metric_families(path.read_text())}
    (at,) = families["kgctl_group_health_evaluation_timestamp_seconds"].samples
    assert at.value == (NOON + MINUTE) / 1000
    assert families["kgctl_group_health_status"].samples == []


def test_a_sink_that_fails_stops_neither_the_others_nor_the_run(tmp_path: Path) -> None:
    evaluate(tmp_path, 0, orders="STALLED", fine="OK")
    with WebhookServer(403).serving() as refuses, WebhookServer(200).serving() as accepts:
        sinks = [f"prometheus:{tmp_path / 'x.prom'}", f"webhook:{refuses.url}", f"webhook:{accepts.url}"]
        run = Run(tmp_path, *sinks)
        assert [one["group"] for one in accepts.requests[0].content["verdicts"]] == ["orders"]
        (note,) = run.notes
        assert note.endswith(" failed: HTTP 403; its verdicts are sent in the next round or run")
        assert note.split(" ")[0] == "webhook:" + refuses.url.removesuffix("/hooks/s3cret")
        with pytest.raises(SinksFailed) as raised:
            run.delivery.conclude()
        assert exit_code_of(raised.value) == 4
        assert str(raised.value).startswith("1 of 3 sinks failed; the tables are complete")
        Run(tmp_path, *sinks)
        assert len(accepts.requests) == 1
        assert len({one.content["verdicts"][0]["id"] for one in refuses.requests}) == 1
        assert len(refuses.requests) == 2


def test_a_bad_verdict_counts_more_than_a_sink_that_fails(tmp_path: Path) -> None:
    evaluate(tmp_path, 0, orders="STALLED")
    with WebhookServer(403).serving() as refuses:
        run = Run(tmp_path, f"webhook:{refuses.url}", fail_on="LAGGING")
    with pytest.raises(VerdictReached):
        run.delivery.conclude()


def test_what_a_webhook_got_is_known_without_its_url_on_disk(tmp_path: Path) -> None:
    evaluate(tmp_path, 0, orders="STALLED")
    with WebhookServer(200).serving() as server:
        Run(tmp_path, f"webhook:{server.url}", webhook_headers=(("Authorization", "s3cret"),))
    written = [path.read_bytes() for path in (tmp_path / "_sinks").iterdir()]
    assert len(written) == 1
    assert b"s3cret" not in written[0]
