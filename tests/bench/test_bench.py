"""The bench: figures of every target, ratios in the right direction, and no errors counted as responses."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from bench import cli, consumer_groups, groups, load, pipelines, secured, share_groups, streams, wire
from bench.measures import COMMANDS, MEASURES, Absent, Figure
from bench.report import Report
from bench.targets import Running, Target, TargetFailed, ours, peer
from bench.wire import Refused
from broker.local import LocalBroker
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.describe_groups import DescribeGroupsRequest
from broker.protocol.messages.heartbeat import HeartbeatRequest
from tests.harness import ROOT
from tests.harness.oracle.over_socket import address_of


def test_a_round_of_our_broker_and_a_peer_gives_every_figure(tmp_path: Path) -> None:
    ready, written = tmp_path / "ready.json", tmp_path / "figures.json"
    # Any command that prints READY is a peer: here our own broker behind a few lines of shell.
    peer_command = (
        f"sh -c '{sys.executable} -m broker --data-dir {{dir}}/d --listen 127.0.0.1:0 --ready-file {ready} & "
        f"while [ ! -e {ready} ]; do sleep 0.01; done; "
        f'echo READY $(sed -E "s/.*\\"address\\": *\\"([^\\"]*)\\".*/\\1/" {ready} | tr -d "\\n") $!; wait\''
    )
    command = [sys.executable, "-m", "bench", "--rounds", "1", "--only", "start", "--only", "rss", "--durability"]
    command += ["process", "--json", str(written), "--peer", f"itself: power=  {peer_command}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    rows = json.loads(written.read_text())["rows"]
    assert {(row["target"], row["measure"], row["durability"]) for row in rows} == {
        (target, measure, durability)
        for target, durability in (("ours-process", "page cache before each response"), ("itself", "power"))
        for measure in ("spawn to first ack", "RSS idle")
    }, done.stderr
    assert all(row["median"] > 0 for row in rows)
    assert "x itself" in done.stdout


def test_ratios_say_by_which_factor_the_first_target_is_better() -> None:
    fast, slow = peer("fast=true"), peer("slow: nothing=true")
    report = Report([fast, slow])
    for target, took, rate in ((fast, 10.0, 300.0), (slow, 40.0, 100.0)):
        report.add(target, Figure("took", "ms", took))
        report.add(target, Figure("rate", "/s", rate, more_is_better=True))
    lines = {line.split(" (")[0]: line.split()[-1] for line in report.text().splitlines() if "(" in line}
    assert lines == {"took": "4.00", "rate": "3.00"}


def test_the_median_of_all_rounds_is_reported() -> None:
    target = peer("one=true")
    report = Report([target])
    for value in (1.0, 100.0, 3.0):
        report.add(target, Figure("took", "ms", value))
    (row,) = report.rows()
    assert (row["median"], row["rounds"]) == (3.0, [1.0, 100.0, 3.0])


def test_a_missing_figure_is_a_dash_with_a_reason() -> None:
    ours, lacking = peer("ours=true"), peer("lacking=true")
    report = Report([ours, lacking])
    report.add(lacking, Absent("rate", "/s", "no such request"))
    report.add(ours, Figure("rate", "/s", 300.0, more_is_better=True))
    row, reason = report.text().splitlines()[-2:]
    assert row.split() == ["rate", "(/s)", "300.0", "-", "-"]
    assert reason == "- lacking, rate: no such request"
    assert [found["target"] for found in report.rows()] == ["ours"]


@pytest.mark.parametrize("option", ["name", "=command", "name=", "name= "])
def test_a_peer_without_name_or_command_is_refused(option: str) -> None:
    with pytest.raises(ValueError, match="NAME=COMMAND"):
        peer(option)


def test_a_broker_that_exits_early_is_named_with_its_output() -> None:
    broken = Target("broken", "", lambda home: ["sh", "-c", "echo no such disk >&2; exit 3"])
    with pytest.raises(TargetFailed, match=r"broken exited with 3: no such disk"), Running(broken):
        pass


def test_load_counts_responses_and_keeps_the_pipeline_full() -> None:
    with LocalBroker() as kafka:
        lines = load.heartbeat_lines(address_of(kafka.bootstrap_servers), 3, "counted")
        try:
            assert load.run(lines[:1], in_flight=64, seconds=0.2).answers >= 64
            assert load.run(lines, in_flight=1, seconds=0.2).answers >= 3
            assert all(line.answered for line in lines)
        finally:
            load.close(lines)


def test_an_error_is_not_counted_as_a_response() -> None:
    with LocalBroker() as kafka:
        address = address_of(kafka.bootstrap_servers)
        stranger = HeartbeatRequest(group_id="g", generation_id=1, member_id="stranger")
        with wire.connect(address) as sock, pytest.raises(wire.Refused, match=str(int(ErrorCode.UNKNOWN_MEMBER_ID))):
            load.Line(sock, stranger)


def test_a_response_that_differs_from_the_first_ends_the_measurement() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        good = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
        theirs.sendall(b"\0\0\0\x0c\0\0\0\x01\0\0\0\0\0\0\0\0")
        line = load.Line(ours, good)
        assert line.take(memoryview(b"\0\0\0\x0c\0\0\0\x01")) == 0
        assert line.take(memoryview(b"\0\0\0\0\0\0\0\0")) == 1
        with pytest.raises(wire.Refused, match="differs"):
            line.take(memoryview(b"\0\0\0\x0c\0\0\0\x01\0\0\0\0\0\0\0\x1b"))


def test_responses_of_a_pipeline_are_in_the_order_of_requests() -> None:
    count = 2 * pipelines.CONNECTIONS * pipelines.IN_FLIGHT + 1
    with LocalBroker() as kafka:
        asked = [DescribeGroupsRequest(groups=[f"stranger-{number}"]) for number in range(count)]
        answers = pipelines.ask_all(address_of(kafka.bootstrap_servers), asked)
    assert [row.group_id for answer in answers for row in answer.groups] == [f"stranger-{n}" for n in range(count)]


def test_requests_about_many_groups_return_all_of_them() -> None:
    with LocalBroker() as kafka:
        address = address_of(kafka.bootstrap_servers)
        census = groups.populate(address, 30)
        assert (len(census.names), len(census.living)) == (30, 3)
        took = [
            groups.list_s(address, census),
            groups.describe_s(address, census, 7),
            groups.fetch_s(address, census, 7),
        ]
        ran = [groups.kgctl(kafka.bootstrap_servers, census, *words.split()) for words in COMMANDS]
        assert all(seconds > 0 for seconds in took + [one.seconds for one in ran])
        assert all(one.peak_mb > 5 for one in ran)


def test_a_response_that_omits_a_group_is_refused() -> None:
    with LocalBroker() as kafka:
        address = address_of(kafka.bootstrap_servers)
        made = groups.populate(address, 20)
        census = groups.Census([*made.names, "bench-group-99999"], made.living)
        with pytest.raises(wire.Refused, match=r"'Empty': 18}, not .*'Empty': 19"):
            groups.list_s(address, census)
        with pytest.raises(wire.Refused, match="not"):
            groups.describe_s(address, census, 100)
        with pytest.raises(wire.Refused, match="committed"):
            groups.fetch_s(address, census, 100)
        with pytest.raises(wire.Refused, match="omitted 1 groups"):
            groups.kgctl(kafka.bootstrap_servers, census, "groups", "list")
        with pytest.raises(wire.Refused, match=r"ended with 2: .*No such command"):
            groups.kgctl(kafka.bootstrap_servers, census, "groups", "lists")


def test_a_secured_broker_of_ours_is_measured_over_tls_and_scram() -> None:
    with Running(ours("process"), secured=True) as running:
        assert running.client_properties is not None
        found = secured.Secured.read(running.client_properties)
        assert len(secured.open_connections(found, 3, authenticate=True).seconds) == 3
        assert streams.produce_mb_s(found.bootstrap, "t", 10, found.librdkafka()) > 0
        assert secured.command_s("topics", "list", "--command-config", str(found.file)) > 0
        with pytest.raises(Refused, match="ended with 7"):
            secured.command_s("topics", "list", "--bootstrap", found.bootstrap)


def test_commands_are_measured_as_multiples_of_an_empty_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "TURNS", 1)
    measure = next(measure for measure in MEASURES if measure.only == "cli")
    with Running(ours("process")) as running:
        figures = list(measure.take(running))
    assert [figure.measure for figure in figures] == [
        "python -c pass",
        "kgctl --help",
        "kgctl groups list --help",
        "kgctl topics list",
        "kgctl groups list",
        "python -m broker, until ready",
        "kgctl broker start",
    ]
    assert all(isinstance(figure, Figure) and figure.value > 0 for figure in figures)


def test_a_consumer_group_settles_and_gets_its_target() -> None:
    with LocalBroker() as broker:
        address = address_of(broker.bootstrap_servers)
        assert consumer_groups.join_time_s(address, "settling", 8, 16) > 0
        assert consumer_groups.target_s(address, "target", 4, 2 * consumer_groups.CREATED_AT_ONCE) > 0
        lines = consumer_groups.heartbeat_lines(address, 2, "beating")
        try:
            assert load.run(lines, 1, 0.05).answers > 0
        finally:
            load.close(lines)


def test_share_consumers_acknowledge_all_records() -> None:
    with LocalBroker() as kafka:
        address = address_of(kafka.bootstrap_servers)
        for consumers, in_a_batch in ((1, 100), (3, 1)):
            topic, group = f"shared-{consumers}", f"group-{consumers}"
            share_groups.prepare(address, topic, [group], 800, in_a_batch)
            assert share_groups.seconds(address, topic, group, consumers, 800) > 0
