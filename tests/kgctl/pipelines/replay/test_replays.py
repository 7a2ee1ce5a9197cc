"""`kgctl pipeline replay` on a cluster: what arrives is what the archive has."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kgctl.model.topic_partition import TopicPartition
from tests.harness import ROOT
from tests.harness.clusters import Cluster, fresh
from tests.harness.commandline import Kgctl
from tests.kgctl.pipelines.archive.making import NOON_MS, Row, add, facts
from tests.kgctl.pipelines.replay.reading_back import contents, of_rows, records

DAY_MS = 86_400_000
blobs = st.none() | st.binary(max_size=40)
headers = st.lists(st.tuples(st.text(st.characters(codec="utf-8"), max_size=4), blobs), max_size=4).map(tuple)


@st.composite
def partitions_of_rows(draw: st.DrawFn) -> list[list[Row]]:
    """Partitions with gaps between offsets, times of several days that go back and forth, and some without a time."""
    found = []
    for _ in range(draw(st.integers(1, 3))):
        rows, offset = [], 0
        for _ in range(draw(st.integers(0, 25))):
            offset += draw(st.sampled_from([1, 1, 1, 2, 9]))
            moment = draw(st.sampled_from([-1, 0]) | st.integers(NOON_MS - DAY_MS, NOON_MS + DAY_MS))
            rows.append(Row(offset, draw(blobs), draw(blobs), moment, draw(headers)))
        found.append(rows)
    return found


@pytest.fixture
def target(cluster: Cluster) -> Kgctl:
    return Kgctl(cluster.bootstrap_servers)


def archived(folder: Path, partitions: Sequence[Sequence[Row]], start: int = 0) -> None:
    rows = {TopicPartition("orders", number): some for number, some in enumerate(partitions)}
    ranges = {key: (start, some[-1].offset + 3 if some else start) for key, some in rows.items()}
    # Without a limit, the target would delete records with old times.
    topic = facts("orders", len(partitions), configs={"retention.ms": "-1"})
    add(folder, rows, ranges, topics=[topic])


def replay(kgctl: Kgctl, folder: Path, *arguments: object) -> str:
    done = kgctl("pipeline", "replay", folder, "--create", "--execute", "--no-journal", *arguments)
    assert done.exit_code == 0, done.output
    return done.output


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(partitions=partitions_of_rows(), codec=st.sampled_from(["none", "gzip", "snappy", "lz4", "zstd"]))
def test_what_arrives_is_equal_byte_by_byte_and_in_the_same_order(
    target: Kgctl, tmp_path_factory: pytest.TempPathFactory, partitions: list[list[Row]], codec: str
) -> None:
    folder, topic = tmp_path_factory.mktemp("archive"), fresh("copy")
    archived(folder, partitions)
    replay(target, folder, "--to", topic, "--compression", codec)
    assert target.bootstrap
    assert contents(target.bootstrap, topic, len(partitions)) == {
        number: of_rows(rows) for number, rows in enumerate(partitions)
    }


def orders(count: int, first: int = 0) -> list[Row]:
    return [Row(n, b"k%d" % (n % 5), b"v%d" % n, NOON_MS + 1000 * n) for n in range(first, first + count)]


def test_a_plan_changes_nothing_and_says_what_is_missing(target: Kgctl, tmp_path: Path) -> None:
    archived(tmp_path, [orders(5), orders(7)])
    topic = fresh("copy")
    refused = target("pipeline", "replay", tmp_path, "--to", topic)
    assert refused.exit_code == 5
    assert "does not exist: add --create" in refused.stderr
    planned = target("pipeline", "replay", tmp_path, "--to", topic, "--create")
    assert planned.exit_code == 0
    assert "Dry run: nothing was changed. Add --execute to apply the plan." in planned.stderr
    assert "will be created with 2 partitions" in " ".join(planned.stdout.split())
    assert target("topics", "describe", topic).exit_code == 5
    assert not (tmp_path / "_replays").exists()
    (row,) = target.rows("pipeline", "replay", tmp_path, "--to", topic, "--create")
    assert (row["topic"], row["target"], row["records"], row["left"], row["status"]) == (
        "orders",
        topic,
        12,
        12,
        "planned",
    )
    assert target("topics", "create", topic, "--partitions", 1).exit_code == 0
    narrow = target("pipeline", "replay", tmp_path, "--to", topic, "--execute")
    assert narrow.exit_code == 6
    assert f"topic '{topic}' has 1 partition, the archive has 2: add --partitions by-key, or" in narrow.stderr
    assert "Nothing was changed." in narrow.stderr


@pytest.mark.parametrize(
    ("configs", "note"),
    [
        ([], "old, and retention.ms deletes records after 7 d"),
        (["--config", "retention.ms=-1"], None),
        (["--config", "cleanup.policy=compact"], None),
        (["--config", "message.timestamp.type=LogAppendTime"], "LogAppendTime: the target replaces the timestamps"),
    ],
)
def test_a_plan_warns_of_what_the_target_does_to_old_records(
    our_cluster: Cluster, tmp_path: Path, configs: list[str], note: str | None
) -> None:
    kgctl, topic = Kgctl(our_cluster.bootstrap_servers), fresh("copy")
    archived(tmp_path, [orders(1)])
    assert kgctl("topics", "create", topic, *configs).exit_code == 0
    (row,) = kgctl.rows("pipeline", "replay", tmp_path, "--to", topic)
    assert row["note"] is None if note is None else note in row["note"]
    assert kgctl("produce", topic, "--key-separator", ":", text="k:v\n").exit_code == 0
    (row,) = kgctl.rows("pipeline", "replay", tmp_path, "--to", topic)
    assert "the target has 1 offset already" in row["note"]


def test_the_target_gets_the_facts_of_the_archive(target: Kgctl, tmp_path: Path) -> None:
    archived(tmp_path, [orders(1)] * 3)
    topic = fresh("copy")
    replay(target, tmp_path, "--to", topic)
    assert len(target.rows("topics", "describe", topic)) == 3
    assert ("retention.ms", "-1") in {
        (row["config"], row["value"]) for row in target.rows("topics", "describe", topic, "--configs")
    }


def test_the_same_command_again_writes_only_what_is_new(target: Kgctl, tmp_path: Path) -> None:
    archived(tmp_path, [orders(30)])
    topic = fresh("copy")
    for _ in range(2):
        replay(target, tmp_path, "--to", topic)
    # The first new record is the first behind the end of the archive.
    add(tmp_path, {TopicPartition("orders", 0): orders(10, first=32)}, {TopicPartition("orders", 0): (32, 60)})
    replay(target, tmp_path, "--to", topic)
    assert target.bootstrap
    assert contents(target.bootstrap, topic, 1)[0] == of_rows([*orders(30), *orders(10, first=32)])
    replay(target, tmp_path, "--to", topic, "--restart")
    replay(target, tmp_path, "--to", topic, "--id", "another")
    assert contents(target.bootstrap, topic, 1)[0] == 3 * of_rows([*orders(30), *orders(10, first=32)])


def test_a_replay_whose_positions_are_gone_does_not_begin_again_by_itself(target: Kgctl, tmp_path: Path) -> None:
    archived(tmp_path, [orders(3)])
    topic = fresh("copy")
    replay(target, tmp_path, "--to", topic)
    (found,) = (tmp_path / "_replays").iterdir()
    key = TopicPartition("other", 0)
    add(tmp_path, {key: orders(2)}, {key: (0, 2)}, topics=[facts("other")])
    refused = target("pipeline", "replay", tmp_path, "--topic", f"other={topic}", "--execute")
    assert refused.exit_code == 6
    assert f"has written topic 'orders' to '{topic}': give another --id" in refused.stderr
    assert target("groups", "delete", found.name, "--execute", "--no-journal").exit_code == 0
    refused = target("pipeline", "replay", tmp_path, "--topic", f"orders={topic}", "--execute")
    assert refused.exit_code == 6
    assert "--restart begins again, which writes records again that are still there" in refused.stderr
    assert target.bootstrap
    assert len(contents(target.bootstrap, topic, 1)[0]) == 3


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        (["--key", "k1", "--key", "k3"], lambda row: row.key in (b"k1", b"k3")),
        (["--key-match", "k[12]"], lambda row: row.key in (b"k1", b"k2")),
        (["--from", "2026-01-31T12:00:05Z"], lambda row: row.offset >= 5),
        (["--until", "2026-01-31T12:00:05Z"], lambda row: row.offset < 5),
    ],
)
def test_filters_choose_records(our_cluster: Cluster, tmp_path: Path, options: list[str], kept: object) -> None:
    archived(tmp_path, [orders(12)])
    kgctl, topic = Kgctl(our_cluster.bootstrap_servers), fresh("copy")
    replay(kgctl, tmp_path, "--to", topic, *options)
    assert callable(kept)
    expected = [row for row in orders(12) if kept(row)]
    assert contents(our_cluster.bootstrap_servers, topic, 1)[0] == of_rows(expected)
    assert "is replayed already" in kgctl("pipeline", "replay", tmp_path, "--to", topic, *options).stdout


def test_by_key_each_key_is_in_one_partition_in_its_order(our_cluster: Cluster, tmp_path: Path) -> None:
    """Also if the archive has more partitions than the target."""
    archived(tmp_path, [orders(20), orders(20), [], orders(20)])
    kgctl, topic = Kgctl(our_cluster.bootstrap_servers), fresh("copy")
    assert kgctl("topics", "create", topic, "--partitions", 2).exit_code == 0
    for _ in range(2):
        replay(kgctl, tmp_path, "--to", topic, "--partitions", "by-key", "--rate", "1m/s")
    found = contents(our_cluster.bootstrap_servers, topic, 2)
    assert sorted(found[0] + found[1], key=repr) == sorted(3 * of_rows(orders(20)), key=repr)
    assert not {one[0] for one in found[0]} & {one[0] for one in found[1]}
    for some in found.values():
        assert some
        assert [one[3] for one in some] == sorted(one[3] for one in some)


def test_more_partitions_than_a_process_may_open_files(our_cluster: Cluster, tmp_path: Path) -> None:
    """Only the order of times over all partitions needs them all."""
    archived(tmp_path, [orders(2)] * 100)
    topic, bootstrap = fresh("copy"), our_cluster.bootstrap_servers
    command = [sys.executable, "-m", "kgctl", "--bootstrap", bootstrap, "pipeline", "replay", tmp_path, "--execute"]

    def limited(*options: str) -> subprocess.CompletedProcess[str]:
        arguments = [*map(str, command), "--no-journal", "--to", topic, *options]
        text = f"ulimit -n 64; exec {shlex.join(arguments)}"
        return subprocess.run(["bash", "-c", text], cwd=ROOT, capture_output=True, text=True, check=False)

    done = limited("--create")
    assert done.returncode == 0, done.stderr
    assert contents(bootstrap, topic, 100) == dict.fromkeys(range(100), of_rows(orders(2)))
    refused = limited("--speed", "1000000", "--id", "another")
    assert refused.returncode == 6, refused.stderr
    assert "100 files of the archive have to be read at the same time, and this process may open 64" in refused.stderr
    done = Kgctl(bootstrap)(*map(str, command[5:]), "--to", topic, "--speed", "1000000", "--id", "another")
    assert done.exit_code == 0, done.output


def test_times_are_shifted_or_new(our_cluster: Cluster, tmp_path: Path) -> None:
    archived(tmp_path, [orders(3)])
    kgctl, topic, bootstrap = Kgctl(our_cluster.bootstrap_servers), fresh("copy"), our_cluster.bootstrap_servers
    before = int(time.time() * 1000)
    replay(kgctl, tmp_path, "--to", topic, "--shift-time", "-1d")
    replay(kgctl, tmp_path, "--to", topic, "--now")
    times = [one.timestamp_ms for one in records(bootstrap, topic, 1)[0]]
    assert times[:3] == [NOON_MS + 1000 * n - DAY_MS for n in range(3)]
    assert all(before <= time_ms <= time.time() * 1000 for time_ms in times[3:])


def test_several_topics_go_under_their_own_or_new_names(our_cluster: Cluster, tmp_path: Path) -> None:
    names = [fresh("a"), fresh("b")]
    for name in names:
        key = TopicPartition(name, 0)
        add(tmp_path, {key: orders(4)}, {key: (0, 4)}, topics=[facts(name, configs={"retention.ms": "-1"})])
    kgctl, bootstrap = Kgctl(our_cluster.bootstrap_servers), our_cluster.bootstrap_servers
    replay(kgctl, tmp_path, "--all-topics")
    replay(kgctl, tmp_path, "--topic", names[0], "--topic", f"{names[1]}={names[1]}-new")
    # The first one was replayed already, by the command for all topics.
    assert contents(bootstrap, names[0], 1)[0] == of_rows(orders(4))
    assert contents(bootstrap, names[1], 1)[0] == contents(bootstrap, f"{names[1]}-new", 1)[0] == of_rows(orders(4))


def test_a_damaged_file_stops_the_replay_and_names_the_file(our_cluster: Cluster, tmp_path: Path) -> None:
    archived(tmp_path, [orders(3)])
    (file,) = tmp_path.glob("records/**/*.parquet")
    file.write_bytes(file.read_bytes()[:-1] + b"?")
    done = Kgctl(our_cluster.bootstrap_servers)(
        "pipeline", "replay", tmp_path, "--to", fresh("copy"), "--create", "--execute", "--no-journal"
    )
    assert done.exit_code == 1
    assert f"Error: {file}: the checksum is not that of the manifest" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Give --to TOPIC, --topic or --all-topics."),
        (["--all-topics", "--to", "x"], "Give one of them."),
        (["--topic", "orders="], "'orders=' names no topic."),
        (["--to", "x", "--topic", "orders", "--topic", "other"], "--to names one topic"),
        (["--topic", "orders=x", "--topic", "orders=y"], "'orders' is given twice."),
        (["--to", "x", "--replication-factor", "1"], "Give it with --create."),
        (["--to", "x", "--rate", "fast"], "'fast' is not a number of records per second"),
        (["--to", "x", "--speed", "0"], "'0' is not a speed"),
        (["--to", "x", "--shift-time", "soon"], "'soon' is not a duration"),
        (["--to", "x", "--key-match", "("], "is not a regular expression"),
        (["--to", "x", "--from", "yesterday"], "'yesterday' is not a time"),
        (["--to", "x", "--from", "now-1d", "--until", "now-2d"], "it is not after --from."),
        (["--to", "x", "--partitions", "none"], "'none' is not one of same, by-key."),
        (["--to", "x", "--now", "--shift-time", "1d"], "Give one of them."),
        (["--to", "x", "--id", "a/b"], "'a/b' has other characters than letters, digits, '.', '_' and '-'"),
    ],
)
def test_wrong_usage_is_explained(our_cluster: Cluster, tmp_path: Path, arguments: list[str], message: str) -> None:
    archived(tmp_path, [orders(1)])
    done = Kgctl(our_cluster.bootstrap_servers)("pipeline", "replay", tmp_path, *arguments)
    assert done.exit_code == 2
    assert message in " ".join(done.stderr.split())


@pytest.mark.parametrize("knows_first_run", [True, False])
def test_a_replay_by_key_continues_when_the_target_has_more_partitions(
    our_cluster: Cluster, tmp_path: Path, knows_first_run: bool
) -> None:
    kgctl, topic, bootstrap = Kgctl(our_cluster.bootstrap_servers), fresh("grown"), our_cluster.bootstrap_servers
    partitions = [[Row(at, b"%d" % at, b"%d-%d" % (number, at)) for at in range(5)] for number in range(4)]
    archived(tmp_path, partitions)
    assert kgctl("topics", "create", topic, "--partitions", "2").exit_code == 0
    by_key = ("--topic", f"orders={topic}", "--partitions", "by-key")
    replay(kgctl, tmp_path, *by_key)
    assert kgctl("topics", "alter", topic, "--partitions", "4", "--execute", "--no-journal").exit_code == 0
    if not knows_first_run:
        shutil.rmtree(tmp_path / "_replays")
    for _ in range(2):
        replay(kgctl, tmp_path, *by_key)
    found = [one[1] for some in contents(bootstrap, topic, 4).values() for one in some]
    assert sorted(found, key=repr) == sorted((row.value for rows in partitions for row in rows), key=repr)


def test_a_replay_into_the_same_partitions_continues_when_topic_and_target_have_grown(
    our_cluster: Cluster, tmp_path: Path
) -> None:
    """Also without the folder of the replay: the positions on the cluster say what is written."""
    kgctl, topic, bootstrap = Kgctl(our_cluster.bootstrap_servers), fresh("grown"), our_cluster.bootstrap_servers
    partitions = [[Row(at, b"k", b"%d-%d" % (number, at)) for at in range(5)] for number in range(4)]
    rows = {TopicPartition("orders", number): some for number, some in enumerate(partitions)}
    for first in (0, 2):
        some = {key: rows[key] for key in rows if first <= key.partition < first + 2}
        topics = [facts("orders", first + 2, configs={"retention.ms": "-1"})]
        add(tmp_path, some, dict.fromkeys(some, (0, 8)), topics=topics)
        if first:
            assert kgctl("topics", "alter", topic, "--partitions", "4", "--execute", "--no-journal").exit_code == 0
        replay(kgctl, tmp_path, "--topic", f"orders={topic}")
    shutil.rmtree(tmp_path / "_replays")
    replay(kgctl, tmp_path, "--topic", f"orders={topic}")
    found = {number: [one[1] for one in some] for number, some in contents(bootstrap, topic, 4).items()}
    assert found == {number: [row.value for row in some] for number, some in enumerate(partitions)}


def test_a_key_can_be_any_bytes(our_cluster: Cluster, tmp_path: Path) -> None:
    archived(tmp_path, [[Row(0, b"\xff", b"this"), Row(1, b"\xfe", b"other")]])
    kgctl, topic = Kgctl(our_cluster.bootstrap_servers), fresh("bytes")
    replay(kgctl, tmp_path, "--to", topic, "--create", "--key", "\udcff")
    assert [one[1] for one in contents(our_cluster.bootstrap_servers, topic, 1)[0]] == [b"this"]


@pytest.mark.parametrize(("moment", "shift", "time"), [(-5, (), -5), (5, ("--shift-time", "-1s"), -995)])
def test_a_record_from_before_1970_is_named(
    our_cluster: Cluster, tmp_path: Path, moment: int, shift: tuple[str, ...], time: int
) -> None:
    archived(tmp_path, [[Row(0), Row(3, timestamp_ms=moment)]])
    arguments = ("--to", fresh("early"), "--create", "--execute", "--no-journal", *shift)
    done = Kgctl(our_cluster.bootstrap_servers)("pipeline", "replay", tmp_path, *arguments)
    assert done.exit_code == 1
    assert f"orders-0, offset 3: the record would have the time {time} ms, which is before 1970" in done.stderr
    assert "continues" not in done.stderr


def test_no_topic_is_created_for_a_replay_that_cannot_begin(our_cluster: Cluster, tmp_path: Path) -> None:
    kgctl, topic = Kgctl(our_cluster.bootstrap_servers), fresh("copy")
    archived(tmp_path / "archive", [orders(1)])
    command = ("pipeline", "replay", tmp_path / "archive", "--to", topic, "--create", "--execute", "--no-journal")
    (tmp_path / "state").symlink_to(tmp_path / "no-such-folder")
    done = kgctl(*command, "--state", tmp_path / "state")
    assert done.exit_code == 1, done.output
    assert "--state names another folder" in done.stderr
    (file,) = (tmp_path / "archive").glob("records/**/*.parquet")
    file.unlink()
    done = kgctl(*command)
    assert done.exit_code == 1
    assert done.stderr == f"Error: {file}: the file is missing; no topic was created\n"
    assert topic not in kgctl("topics", "list").output


def test_what_a_replay_keeps_cannot_be_in_a_file(our_cluster: Cluster, tmp_path: Path) -> None:
    archived(tmp_path, [orders(1)])
    file = tmp_path / "file"
    file.touch()
    done = Kgctl(our_cluster.bootstrap_servers)("pipeline", "replay", tmp_path, "--to", "x", "--state", file)
    assert (done.exit_code, "cannot be read" in done.stderr) == (1, True), done.output
