"""`kgctl groups assert` and `kgctl groups wait` on running clusters."""

from __future__ import annotations

import json
import os
import re
import socket
import threading
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.harness.clusters import Cluster, fresh
from tests.harness.commandline import Kgctl, fill, member_of


@pytest.fixture
def topic(kgctl: Kgctl) -> str:
    """Three partitions: 10 records, 5 records, none."""
    name = fresh("orders")
    assert kgctl("topics", "create", name, "--partitions", 3).exit_code == 0
    fill(kgctl, name, [10, 5])
    return name


@contextmanager
def meanwhile(work: Callable[[threading.Event], None]) -> Iterator[None]:
    """Runs `work` in a thread until the block ends, which the event says."""
    over, failures = threading.Event(), []

    def run() -> None:
        try:
            work(over)
        except BaseException as failure:
            failures.append(failure)
            raise

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(30)
    assert not failures


def joined(kgctl: Kgctl, group: str, topic: str, after_s: float = 0.5) -> Callable[[threading.Event], None]:
    def work(over: threading.Event) -> None:
        over.wait(after_s)
        with member_of(kgctl, group, {topic: [0, 1, 2]}):
            over.wait(60)

    return work


def row(kgctl: Kgctl, *arguments: object, code: int = 0) -> dict[str, Any]:
    result = kgctl(*arguments, "-o", "json")
    assert result.exit_code == code, result.output
    (found,) = json.loads(result.stdout)["rows"]
    assert isinstance(found, dict)
    return found


# --- assert ---


def test_a_condition_that_holds_is_success(kgctl: Kgctl, topic: str) -> None:
    group = fresh("g")
    kgctl.commit(group, topic, p0=8, p1=5)
    text = f"state == Empty and members == 0 and lag == 2 and max_lag == 2 and lag({topic}) == 2 and partitions == 2"
    found = row(kgctl, "groups", "assert", group, "--for", text)
    assert (found["is_met"], found["failed"], found["error"]) == (True, [], None)
    assert found["values"]["lag"] == 2


def test_the_smallest_parts_that_fail_are_named_with_their_values(kgctl: Kgctl, topic: str) -> None:
    group = fresh("g")
    kgctl.commit(group, topic, p0=8)
    result = kgctl("groups", "assert", group, "--for", "state == Empty and lag < 2 and not (members == 0)")
    assert result.exit_code == 3
    failed = "lag < 2 (lag is 2); not members == 0 (members is 0)"
    assert result.stderr == f"Error: group '{group}': the condition was not met: {failed}\n"
    assert result.stdout.splitlines()[1].split()[:2] == [group, "no"]


def test_a_group_that_does_not_exist_is_dead_and_has_no_lag(kgctl: Kgctl, topic: str) -> None:
    absent, group = fresh("absent"), fresh("g")
    kgctl.commit(group, topic, p0=10)
    assert kgctl("groups", "assert", absent, "--for", "state == Dead and members == 0").exit_code == 0
    result = kgctl("groups", "assert", absent, "--for", "lag < 100")
    assert (result.exit_code, result.stderr) == (5, f"Error: Consumer group '{absent}' does not exist\n")
    assert kgctl("groups", "assert", absent, "--for", "not lag < 100").exit_code == 5
    # One group fails the condition, the other one is missing: the condition is not met.
    assert kgctl("groups", "assert", absent, group, "--for", "lag > 0").exit_code == 3


def test_several_groups_are_checked_by_name_and_by_pattern(kgctl: Kgctl, topic: str) -> None:
    stem = fresh("etl")
    for number, offset in enumerate((10, 4)):
        kgctl.commit(f"{stem}-{number}", topic, p0=offset)
    for chosen in ([f"{stem}-0", f"{stem}-1"], ["--match", f"{stem}-."]):
        result = kgctl("groups", "assert", *chosen, "--for", "lag == 0", "-o", "json")
        assert result.exit_code == 3
        assert [one["is_met"] for one in json.loads(result.stdout)["rows"]] == [True, False]
    assert kgctl("groups", "assert", "--match", f"{stem}-0", "--for", "lag == 0").exit_code == 0
    none = kgctl("groups", "assert", "--match", "no-such-group", "--for", "lag == 0")
    assert (none.exit_code, none.stderr) == (5, "Error: No group matches 'no-such-group'.\n")


def test_a_group_that_nobody_uses_fails_no_condition_about_the_lag_of_all(kgctl: Kgctl, topic: str) -> None:
    stem = fresh("etl")
    done, unused = f"{stem}-done", f"{stem}-unused"
    kgctl.commit(done, topic, p0=10)
    with member_of(kgctl, unused, {topic: [0]}):
        pass
    result = kgctl("groups", "assert", "--match", f"{stem}-.*", "--for", "lag == 0", "-o", "name")
    assert (result.exit_code, result.stdout) == (0, f"{done}\n"), result.stderr
    assert f"Left out 1 group with neither members nor offsets: '{unused}'.\n" in result.stderr
    # Nothing is left out of what the group itself can show, nor if nothing else is left.
    assert kgctl("groups", "assert", "--match", f"{stem}-.*", "--for", "state == Stable").exit_code == 3
    for chosen in ([unused], ["--match", unused]):
        assert kgctl("groups", "assert", *chosen, "--for", "lag == 0").exit_code == 3


def test_records_that_were_never_committed_are_not_taken_for_read(kgctl: Kgctl, topic: str) -> None:
    group = fresh("g")
    kgctl.commit(group, topic, p0=10)
    with member_of(kgctl, group, {topic: [0, 1, 2]}):
        result = kgctl("groups", "assert", group, "--for", "lag < 1000")
        assert result.exit_code == 3
        assert f"lag is not known: {topic}-1 has no committed offset" in result.stderr
    kgctl.commit(group, topic, p1=5)
    # Partition 2 has no records: nothing to commit there.
    with member_of(kgctl, group, {topic: [0, 1, 2]}):
        assert kgctl("groups", "assert", group, "--for", "lag == 0 and unassigned == 0").exit_code == 0


def test_partitions_without_an_owner_are_unassigned(kgctl: Kgctl, topic: str) -> None:
    group = fresh("g")
    with member_of(kgctl, group, {topic: [0]}):
        assert row(kgctl, "groups", "assert", group, "--for", "unassigned == 2")["is_met"]


def test_verdict_times_and_generation(kgctl: Kgctl, topic: str) -> None:
    group = fresh("g")
    kgctl.commit(group, topic, p0=10, p1=5)
    text = "verdict == OK and commit_age < 1h and time_lag == 0s and type == classic"
    assert row(kgctl, "groups", "assert", group, "--for", text)["is_met"]
    with member_of(kgctl, group, {topic: [0]}):
        assert row(kgctl, "groups", "assert", group, "--for", "generation >= 1")["is_met"]


def test_a_junit_file_and_annotations_say_what_failed(
    kgctl: Kgctl, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good, bad, absent = fresh("good"), fresh("bad%,:<&"), fresh("absent")
    kgctl.commit(good, topic, p0=10)
    kgctl.commit(bad, topic, p0=4)
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    path = tmp_path / "report.xml"
    result = kgctl("groups", "assert", good, bad, absent, "--for", "lag == 0", "--junit", path)
    assert result.exit_code == 3
    message = f"group '{bad}': the condition was not met: lag == 0 (lag is 6)"
    annotations = [line for line in result.stderr.splitlines() if line.startswith("::")]
    assert annotations[0] == f"::error title=kgctl groups assert::{message.replace('%', '%25')}"
    assert len(annotations) == 2
    (suite,) = ET.parse(path).getroot()
    assert (suite.attrib["tests"], suite.attrib["failures"], suite.attrib["errors"]) == ("3", "1", "1")
    cases = {case.attrib["name"]: [(one.tag, one.attrib["message"]) for one in case] for case in suite}
    assert cases == {
        f"{good}: lag == 0": [],
        f"{bad}: lag == 0": [("failure", message)],
        f"{absent}: lag == 0": [("error", f"Consumer group '{absent}' does not exist")],
    }


def test_junit_writes_into_a_pipe_and_through_a_link(kgctl: Kgctl, tmp_path: Path) -> None:
    pipe, link, file = (tmp_path / name for name in ("pipe", "link", "file"))
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    link.symlink_to(file)
    file.touch()
    for path in (pipe, link):
        result = kgctl("groups", "assert", fresh("g"), "--for", "state == Dead", "--junit", path)
        assert (result.exit_code, result.stderr) == (0, "")
    assert pipe.is_fifo()
    assert link.is_symlink()
    with os.fdopen(reader) as read:
        assert [ET.fromstring(text).attrib["tests"] for text in (read.read(), file.read_text())] == ["1", "1"]


def test_a_junit_file_says_that_the_cluster_did_not_answer(tmp_path: Path) -> None:
    path = tmp_path / "report.xml"
    result = Kgctl("127.0.0.1:1")("groups", "assert", "g", "--for", "lag == 0", "--junit", path)
    assert result.exit_code == 7
    assert [one.tag for one in ET.parse(path).getroot().iter()][-1] == "error"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["assert", "--for", "lag == 0"], "Name groups, or give --match REGEX or --all."),
        (["assert", "g", "--all", "--for", "lag == 0"], "Give GROUP or --all, not both."),
        (["assert", "g"], "Missing option '--for'"),
        (["assert", "g", "--for", "lagg == 0"], "unknown variable 'lagg'; known are assignment_epoch, commit_age, "),
        (["assert", "g", "--for", "lag == 0 or lag"], "  lag == 0 or lag\n                 ^\n"),
        (["assert", "g", "--for", "lag == 0", "--junit", "/no/such/dir/x.xml"], "cannot write '/no/such/dir/x.xml'"),
        (["wait", "g", "--for", "lag == 0", "--timeout", "soon"], "'soon' is not a duration"),
        (["wait", "g", "--for", "lag == 0", "--timeout", "0"], "'0' is not between 1ms and 7d."),
        (["wait", "g", "--for", "lag == 0", "--stable-for", "1m"], "It must be shorter than --timeout."),
        (["wait", "g", "--for", "lag == 0", "--watch"], "No such option: --watch"),
    ],
)
def test_what_cannot_work_is_refused_before_the_cluster_is_asked(arguments: list[str], sentence: str) -> None:
    result = Kgctl("127.0.0.1:1")("groups", *arguments)
    assert (result.exit_code, sentence in result.stderr) == (2, True), result.stderr


# --- wait ---


def test_a_wait_ends_when_the_group_is_stable(kgctl: Kgctl, topic: str) -> None:
    group = fresh("g")
    with meanwhile(joined(kgctl, group, topic)):
        found = row(
            kgctl,
            *("groups", "wait", group, "--for", "state == Stable and members >= 1"),
            *("--stable-for", "500ms", "--timeout", "60s"),
        )
    assert found["values"] == {"state": "Stable", "members": 1}
    assert (found["is_met"], found["held_ms"] >= 500, found["waited_ms"] >= 500) == (True, True, True)


def test_a_wait_for_the_end_of_a_group(kgctl: Kgctl, topic: str) -> None:
    group = fresh("g")
    kgctl.commit(group, topic, p0=10)
    late = kgctl("groups", "wait", group, "--for", "state == Dead", "--timeout", "300ms")
    assert late.exit_code == 3
    assert kgctl("groups", "delete", group, "--execute").exit_code == 0
    assert kgctl("groups", "wait", group, "--for", "state == Dead").exit_code == 0


def test_a_deadline_says_what_was_missing(kgctl: Kgctl, topic: str, tmp_path: Path) -> None:
    group, path = fresh("g"), tmp_path / "wait.xml"
    kgctl.commit(group, topic, p0=8)
    result = kgctl("groups", "wait", group, "--for", "lag < 2", "--timeout", "0.5", "--junit", path)
    assert result.exit_code == 3
    said = re.escape(f"Error: group '{group}': the condition was not met within SECONDS s: lag < 2 (lag is 2)\n")
    assert re.fullmatch(said.replace("SECONDS", r"\d+(\.\d+)?"), result.stderr)
    assert re.search(r"within \d+(\.\d+)? s", path.read_text())
    absent = kgctl("groups", "wait", fresh("absent"), "--for", "lag < 2", "--timeout", "0.5")
    assert (absent.exit_code, absent.stderr.endswith("does not exist\n")) == (5, True)


def test_a_condition_that_comes_and_goes_is_not_stable(kgctl: Kgctl, topic: str) -> None:
    group = fresh("g")
    kgctl.commit(group, topic, p0=10)

    def swing(over: threading.Event) -> None:
        consumer = Consumer({"bootstrap.servers": kgctl.bootstrap, "group.id": group})
        while not over.wait(0.4):
            for offset in (3, 10):
                consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
                over.wait(0.4)
        consumer.close()

    with meanwhile(swing):
        result = kgctl("groups", "wait", group, "--for", "lag == 0", "--stable-for", "3s", "--timeout", "5s")
    assert result.exit_code == 3, result.output
    assert ("lag is 7" in result.stderr) or "did not hold long enough" in result.stderr


def test_a_broker_that_does_not_answer_cannot_delay_the_deadline() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        result = Kgctl(address)("groups", "wait", "g", "--for", "lag == 0", "--timeout", "500ms", "-o", "json")
    # 7: it never answered.
    assert result.exit_code == 7
    assert json.loads(result.stdout)["rows"][0]["waited_ms"] < 10_000


def test_a_wait_survives_a_restart_of_the_broker(own_cluster: Cluster) -> None:
    kgctl = Kgctl(own_cluster.bootstrap_servers)
    topic, group = fresh("orders"), fresh("g")
    assert kgctl("topics", "create", topic, "--partitions", 3).exit_code == 0

    def restart_and_join(over: threading.Event) -> None:
        own_cluster.kill()
        over.wait(1)
        own_cluster.restart()
        joined(kgctl, group, topic)(over)

    with meanwhile(restart_and_join):
        found = row(kgctl, "groups", "wait", group, "--for", "state == Stable", "--timeout", "90s")
    assert found["is_met"]


def test_a_wait_without_a_cluster_says_so_at_the_deadline() -> None:
    result = Kgctl("127.0.0.1:1")("groups", "wait", "g", "--for", "lag == 0", "--timeout", "300ms")
    assert result.exit_code == 7
    assert "127.0.0.1:1" in result.stderr
