"""A delivery is killed at each of its steps: the next run sends what is not known to be sent, with the id that it had."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from broker.local import LocalBroker
from kgctl.pipelines.results.webhook import MAX_NOTICES
from tests.harness.commandline import Kgctl
from tests.harness.webhook_server import WebhookServer
from tests.kgctl.pipelines.results.evaluations import evaluate

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

Deliver = Callable[..., int]
# In two requests.
GROUPS = [f"group-{number:03}" for number in range(MAX_NOTICES + 5)]
RECORDS = 10


@pytest.fixture(scope="module")
def deliver() -> Iterator[Deliver]:
    """Deliver from a folder to a sink, and die at a step; the exit code of the process."""
    command = [sys.executable, "-m", "tests.kgctl.pipelines.results.dying"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdin is not None
        assert program.stdout is not None

        def deliver(
            out: Path, sink: str, bootstrap: str = "127.0.0.1:1", step: str = "", when: str = "", nth: int = 1
        ) -> int:
            assert program.stdin is not None
            assert program.stdout is not None
            program.stdin.write(json.dumps([str(out), sink, bootstrap, step, when, nth]) + "\n")
            program.stdin.flush()
            return int(program.stdout.readline())

        yield deliver
        program.stdin.close()


@pytest.fixture(scope="module")
def kgctl() -> Iterator[Kgctl]:
    with LocalBroker() as broker:
        yield Kgctl(broker.bootstrap_servers)


@pytest.mark.parametrize(
    ("step", "when", "nth", "sent_before", "sent_again"),
    [
        ("note", "before", 1, 0, RECORDS),
        ("note", "after", 1, 0, RECORDS),
        ("record", "after", 4, 4, RECORDS),
        ("flush", "after", 1, RECORDS, RECORDS),
        ("note", "before", 2, RECORDS, RECORDS),
        ("rename", "before", 2, RECORDS, RECORDS),
        ("note", "after", 2, RECORDS, 0),
    ],
)
def test_a_topic_gets_every_verdict_and_repetitions_have_the_same_id(
    deliver: Deliver, kgctl: Kgctl, tmp_path: Path, step: str, when: str, nth: int, sent_before: int, sent_again: int
) -> None:
    topic, where = f"{step}-{when}-{nth}", str(kgctl.bootstrap)
    # The records have the times of the evaluations, years ago.
    assert kgctl("topics", "create", topic, "--config", "retention.ms=-1").exit_code == 0
    evaluate(tmp_path, 0, **dict.fromkeys(GROUPS[:RECORDS], "STALLED"))
    assert deliver(tmp_path, f"kafka:{topic}", where, step, when, nth) == -signal.SIGKILL
    before = records(kgctl, topic)
    assert len(before) == sent_before
    evaluate(tmp_path, 1, **dict.fromkeys(GROUPS[:RECORDS], "STALLED"))
    assert deliver(tmp_path, f"kafka:{topic}", where) == 0
    found = records(kgctl, topic)
    assert len(found) == sent_before + sent_again
    assert_same_in_each_attempt(found, RECORDS)
    assert deliver(tmp_path, f"kafka:{topic}", where) == 0
    assert len(records(kgctl, topic)) == len(found)


@pytest.mark.parametrize(
    ("step", "when", "nth", "requests_before", "requests_again"),
    [
        ("note", "after", 1, 0, 2),
        ("request", "before", 1, 0, 2),
        ("request", "after", 1, 1, 2),
        ("note", "after", 2, 1, 1),
        ("request", "after", 2, 2, 1),
        ("rename", "before", 3, 2, 1),
        ("note", "after", 3, 2, 0),
    ],
)
def test_a_webhook_gets_every_verdict_and_what_it_accepted_only_if_that_was_not_noted(
    deliver: Deliver, tmp_path: Path, step: str, when: str, nth: int, requests_before: int, requests_again: int
) -> None:
    evaluate(tmp_path, 0, **dict.fromkeys(GROUPS, "STALLED"))
    with WebhookServer(200).serving() as server:
        assert deliver(tmp_path, f"webhook:{server.url}", step=step, when=when, nth=nth) == -signal.SIGKILL
        assert len(server.requests) == requests_before
        evaluate(tmp_path, 1, **dict.fromkeys(GROUPS, "STALLED"))
        assert deliver(tmp_path, f"webhook:{server.url}") == 0
        assert len(server.requests) == requests_before + requests_again
        assert_same_in_each_attempt(
            [verdict for request in server.requests for verdict in request.content["verdicts"]], len(GROUPS)
        )
        ids_of: dict[str, list[str]] = {}
        for request in server.requests:
            ids = [verdict["id"] for verdict in request.content["verdicts"]]
            assert ids_of.setdefault(request.headers["Idempotency-Key"], ids) == ids
        assert deliver(tmp_path, f"webhook:{server.url}") == 0
        assert len(server.requests) == requests_before + requests_again


def test_a_fault_that_ended_after_a_kill_is_resolved_at_the_sink(deliver: Deliver, tmp_path: Path) -> None:
    evaluate(tmp_path, 0, orders="STALLED")
    with WebhookServer(200).serving() as server:
        assert deliver(tmp_path, f"webhook:{server.url}", step="request", when="after") == -signal.SIGKILL
        evaluate(tmp_path, 1, orders="OK")
        assert deliver(tmp_path, f"webhook:{server.url}") == 0
        sent = [request.content["verdicts"][0] for request in server.requests]
    assert [(one["status"], one["resolved"]) for one in sent] == [("STALLED", False), ("OK", True)]


@pytest.mark.parametrize(("step", "when"), [("file", "before"), ("rename", "before"), ("rename", "after")])
def test_a_prometheus_file_is_never_half_written(deliver: Deliver, tmp_path: Path, step: str, when: str) -> None:
    path = tmp_path / "metrics" / "groups.prom"
    path.parent.mkdir()
    evaluate(tmp_path / "out", 0, orders="STALLED")
    assert deliver(tmp_path / "out", f"prometheus:{path}") == 0
    evaluate(tmp_path / "out", 1, orders="OK")
    assert deliver(tmp_path / "out", f"prometheus:{path}", step=step, when=when) == -signal.SIGKILL
    assert status_in(path) == ("STALLED" if when == "before" else "OK")
    assert list(path.parent.glob("*.prom")) == [path]
    assert deliver(tmp_path / "out", f"prometheus:{path}") == 0
    assert status_in(path) == "OK"


def records(kgctl: Kgctl, topic: str) -> list[dict[str, object]]:
    consumed = kgctl("consume", topic, "--from-beginning", "--until-end", "--json")
    assert consumed.exit_code == 0, consumed.stderr
    return [json.loads(json.loads(line)["value"]) for line in consumed.stdout.splitlines()]


def assert_same_in_each_attempt(found: list[dict[str, object]], groups: int) -> None:
    """One verdict for each group, however often it was sent and evaluated: its id is enough to recognize it."""
    distinct = Counter(json.dumps({**one, "at": None}, sort_keys=True) for one in found)
    assert len(distinct) == groups == len({one["id"] for one in found})
    assert max(distinct.values()) <= 2


def status_in(path: Path) -> str:
    families = {family.name: family for family in text_string_to_metric_families(path.read_text())}
    (found,) = [one.labels["status"] for one in families["kgctl_group_health_status"].samples if one.value == 1]
    return found
