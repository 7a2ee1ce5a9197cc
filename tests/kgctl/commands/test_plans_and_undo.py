"""Plans as files, their application, the journal of what was done, and undo."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import confluent_kafka
import jsonschema
import pytest

from kgctl.client.admin.offsets import commit_each
from kgctl.journal.journal import MOST_ENTRIES
from kgctl.journal.lines import read_lines, replace_lines
from kgctl.model.groups import Committed
from kgctl.model.topic_partition import TopicPartition
from tests.harness.clusters import Cluster, fresh
from tests.harness.commandline import Kgctl, fill, member_of
from tests.kgctl.contexts.folders import Home


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A journal for each test."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "kgctl" / "journal"


@pytest.fixture
def topic(kgctl: Kgctl) -> str:
    name = fresh("orders")
    assert kgctl("topics", "create", name, "--partitions", 2, "--no-journal").exit_code == 0
    fill(kgctl, name, [100, 50])
    return name


@pytest.fixture
def group(kgctl: Kgctl, topic: str) -> str:
    """Committed at 10 and 20."""
    name = fresh("g")
    kgctl.commit(name, topic, p0=10, p1=20)
    return name


def offsets_of(kgctl: Kgctl, group: str) -> dict[int, int | None]:
    return {row["partition"]: row["current_offset"] for row in kgctl.rows("groups", "describe", group)}


def plan(kgctl: Kgctl, path: Path, *arguments: object) -> Any:
    done = kgctl("groups", *arguments, "--plan", path)
    assert done.exit_code == 0, done.output
    return json.loads(path.read_text())


def newest(kgctl: Kgctl, group: str) -> dict[str, Any]:
    rows: list[dict[str, Any]] = Kgctl().rows("journal", "--group", group)
    return rows[-1]


# --- plan and apply ---


def test_a_plan_is_written_checked_and_applied_once(kgctl: Kgctl, topic: str, group: str, tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    written = plan(kgctl, file, "reset-offsets", group, "--topic", topic, "--to-earliest")
    jsonschema.validate(written, json.loads(Kgctl()("schema", "plan-file").stdout))
    (of_group,) = written["groups"]
    assert (of_group["group"], of_group["state"]) == (group, "Empty")
    assert [(row["partition"], row["old_offset"], row["new_offset"]) for row in of_group["moves"]] == [
        (0, 10, 0),
        (1, 20, 0),
    ]
    assert file.stat().st_mode & 0o777 == 0o600
    assert offsets_of(kgctl, group) == {0: 10, 1: 20}
    dry = kgctl("apply", file)
    assert (dry.exit_code, offsets_of(kgctl, group)) == (0, {0: 10, 1: 20})
    assert "Add --execute to apply the plan." in dry.stderr
    assert kgctl("apply", file, "--execute").exit_code == 0
    assert offsets_of(kgctl, group) == {0: 0, 1: 0}
    again = kgctl("apply", file, "--execute")
    assert again.exit_code == 6
    assert f"group {group!r}, {topic}-0: committed 0 now, not 10 as when the plan was made" in again.stderr


def test_a_group_that_moved_is_refused_as_a_whole_and_force_overrides(
    kgctl: Kgctl, topic: str, group: str, tmp_path: Path
) -> None:
    other = fresh("other")
    kgctl.commit(other, topic, p0=1)
    file = tmp_path / "plan.json"
    plan(kgctl, file, "reset-offsets", group, other, "--all-topics", "--to-latest")
    kgctl.commit(group, topic, p1=21)
    refused = kgctl("apply", file, "--execute")
    assert refused.exit_code == 6
    assert f"group {group!r}, {topic}-1: committed 21 now, not 20 as when the plan was made" in refused.stderr
    assert "Nothing was changed." in refused.stderr
    assert (offsets_of(kgctl, group), offsets_of(kgctl, other)) == ({0: 10, 1: 21}, {0: 1})
    assert kgctl("apply", file, "--force", "--execute").exit_code == 0
    assert (offsets_of(kgctl, group), offsets_of(kgctl, other)) == ({0: 100, 1: 50}, {0: 100})


def test_state_and_members_count_as_moved(kgctl: Kgctl, topic: str, group: str, tmp_path: Path) -> None:
    reset, removal, deletion = tmp_path / "reset.json", tmp_path / "removal.json", tmp_path / "deletion.json"
    plan(kgctl, reset, "reset-offsets", group, "--all-topics", "--to-latest")
    plan(kgctl, deletion, "delete", group)
    with member_of(kgctl, group, {topic: [0, 1]}):
        plan(kgctl, removal, "remove-members", group, "--all")
        for file in (reset, deletion):
            done = kgctl("apply", file, "--execute")
            assert done.exit_code == 6
            assert f"group {group!r} is Stable with 1 member now, not Empty as when the plan was made" in done.stderr
        # Also with --force, a group with members keeps its offsets.
        forced = kgctl("apply", reset, "--force", "--execute")
        assert (forced.exit_code, offsets_of(kgctl, group)) == (6, {0: 10, 1: 20})
        assert "can only be reset if the group" in forced.stderr
    with member_of(kgctl, group, {topic: [0, 1]}):
        done = kgctl("apply", removal, "--execute")
        assert done.exit_code == 6
        assert "has changed since the plan was made: 1 member (" in done.stderr
    assert kgctl("groups", "delete", group, "--execute").exit_code == 0
    gone = kgctl("apply", reset, "--execute")
    assert (gone.exit_code, f"group {group!r} was deleted since the plan was made" in gone.stderr) == (6, True)


def test_each_verb_writes_a_plan_that_apply_executes(kgctl: Kgctl, topic: str, group: str, tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    plan(kgctl, file, "delete-offsets", group, "--topic", f"{topic}:1")
    assert kgctl("apply", file, "--execute").exit_code == 0
    assert offsets_of(kgctl, group) == {0: 10}
    with member_of(kgctl, group, {topic: [0, 1]}):
        assert plan(kgctl, file, "rebalance", group, "--evict")["groups"][0]["action"] == "rebalance"
        plan(kgctl, file, "remove-members", group, "--all", "--reason", "why not")
        assert kgctl("apply", file, "--execute").exit_code == 0
        assert kgctl.rows("groups", "describe", group, "--state")[0]["state"] == "Empty"
    plan(kgctl, file, "delete", group)
    assert kgctl("apply", file, "--execute").exit_code == 0
    assert group not in [row["group"] for row in kgctl.rows("groups", "list")]


def test_a_plan_of_which_a_commit_fails_deletes_no_offsets(
    kgctl: Kgctl, topic: str, group: str, tmp_path: Path
) -> None:
    file = tmp_path / "plan.json"
    written = plan(kgctl, file, "reset-offsets", group, "--topic", topic, "--to-earliest")
    moves = written["groups"][0]["moves"]
    # One offset to delete, and one to commit for a partition that does not exist.
    moves[0]["new_offset"] = None
    moves[1] |= {"partition": 9, "old_offset": None}
    file.write_text(json.dumps(written))
    assert kgctl("apply", file, "--execute").exit_code not in (0, 2)
    assert offsets_of(kgctl, group) == {0: 10, 1: 20}


def test_a_plan_for_another_cluster_is_refused_even_with_force(
    kgctl: Kgctl, topic: str, group: str, tmp_path: Path
) -> None:
    file = tmp_path / "plan.json"
    written = plan(kgctl, file, "reset-offsets", group, "--all-topics", "--to-latest")
    file.write_text(json.dumps(written | {"cluster_id": "elsewhere"}))
    done = kgctl("apply", file, "--force", "--execute")
    assert done.exit_code == 6
    assert f"{file} is a plan for cluster elsewhere, and this is cluster" in done.stderr
    assert offsets_of(kgctl, group) == {0: 10, 1: 20}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 2}, "has version 2; this kgctl reads version 1"),
        ({"kind": "kgctl-snapshot"}, "is not a kgctl-plan file: it is a kgctl-snapshot"),
        ({"groups": None}, "is not valid: groups is not a list"),
        ({"surplus": 1}, "is not valid: the document has an unknown key 'surplus'"),
        ({"groups": [{"group": "x"}]}, "is not valid: groups[0] lacks 'action'"),
    ],
)
def test_a_file_that_is_no_plan_is_a_usage_error(tmp_path: Path, change: dict[str, object], message: str) -> None:
    file = tmp_path / "plan.json"
    good = {"kind": "kgctl-plan", "version": 1, "verb": "v", "cluster_id": "c", "created_ms": 1, "groups": []}
    file.write_text(json.dumps({**good, "reason": None, **change}))
    done = Kgctl("127.0.0.1:1")("apply", file, "--execute")
    assert done.exit_code == 2
    assert message in " ".join(done.stderr.replace("│", "").split())


def test_plan_and_execute_exclude_each_other(kgctl: Kgctl, group: str, tmp_path: Path) -> None:
    done = kgctl("groups", "delete", group, "--execute", "--plan", tmp_path / "p.json")
    assert (done.exit_code, (tmp_path / "p.json").exists()) == (2, False)


def test_apply_and_undo_ask_for_consent(home: Home, our_cluster: Cluster, tmp_path: Path) -> None:
    ours = Kgctl(our_cluster.bootstrap_servers)
    topic, group, file = fresh("t"), fresh("g"), tmp_path / "plan.json"
    assert ours("topics", "create", topic, "--no-journal").exit_code == 0
    ours.commit(group, topic, p0=0)
    plan(ours, file, "delete", group)
    address = f'bootstrap.servers = "{our_cluster.bootstrap_servers}"'
    home.write(f"[contexts.prod]\n{address}\nread-only = true\n")
    for command in (["apply", str(file)], ["undo"]):
        done = home.kgctl(*command, "--execute", "--context", "prod")
        assert (done.exit_code, "is refused: context 'prod' is read-only" in done.stderr) == (6, True)
        assert home.kgctl(*command, "--context", "prod").exit_code == 0
    home.write(f"[contexts.prod]\n{address}\nconfirm = true\n")
    for command in (["apply", str(file), "--force"], ["undo"]):
        done = home.kgctl(*command, "--execute", "--context", "prod")
        assert (done.exit_code, f"add --yes {group}" in done.stderr) == (6, True)
    assert home.kgctl("apply", str(file), "--execute", "--yes", group, "--context", "prod").exit_code == 0


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


# --- journal and undo ---


def test_a_reset_is_taken_back_with_its_metadata_and_its_new_offsets_are_deleted(
    kgctl: Kgctl, topic: str, group: str
) -> None:
    consumer = confluent_kafka.Consumer({"bootstrap.servers": kgctl.bootstrap, "group.id": group})
    consumer.commit(offsets=[confluent_kafka.TopicPartition(topic, 0, 11, "noted")], asynchronous=False)
    consumer.close()
    assert kgctl("groups", "delete-offsets", group, "--topic", f"{topic}:1", "--execute").exit_code == 0
    assert kgctl("groups", "reset-offsets", group, "--topic", topic, "--to-latest", "--execute").exit_code == 0
    entry = newest(kgctl, group)
    assert (entry["verb"], entry["outcome"], entry["groups"]) == ("reset-offsets", "done", [group])
    assert entry["command"].startswith(f"kgctl groups reset-offsets {group} --topic {topic}")
    dry = kgctl("undo", entry["id"])
    assert (dry.exit_code, offsets_of(kgctl, group)) == (0, {0: 100, 1: 50})
    assert kgctl("undo", entry["id"], "--execute").exit_code == 0
    assert offsets_of(kgctl, group) == {0: 11}
    with kgctl.admin() as admin:
        (found,) = admin.committed([group]).values()
    assert isinstance(found, dict)
    # librdkafka sends the end of the C string, too.
    assert [(one.metadata or "").rstrip("\0") for one in found.values()] == ["noted"]
    rows = Kgctl().rows("journal", "--group", group)
    assert (rows[-1]["undoes"], rows[-2]["undone_by"]) == (entry["id"], rows[-1]["id"])


def test_a_deleted_group_gets_its_offsets_back(kgctl: Kgctl, topic: str, group: str) -> None:
    assert kgctl("groups", "delete", group, "--execute").exit_code == 0
    assert kgctl("undo", "--execute").exit_code == 0
    assert offsets_of(kgctl, group) == {0: 10, 1: 20}


def test_a_group_that_a_reset_created_goes_with_its_undo(kgctl: Kgctl, topic: str) -> None:
    created, others = fresh("g"), fresh("g")
    for group in (created, others):
        kgctl.commit(group, topic, p0=1)
    first = newest(kgctl, others)["id"]
    kgctl.commit(others, topic, p1=2)
    planned = kgctl("undo", newest(kgctl, created)["id"])
    assert f"Group '{created}' did not exist before: it is deleted, too" in planned.stderr
    undone = kgctl.rows("undo", newest(kgctl, created)["id"], "--execute")
    assert [(row["action"], row["status"]) for row in undone] == [("offsets", "done"), ("deletion", "done")]
    assert created not in {row["group"] for row in kgctl.rows("groups", "list")}
    # A group with other offsets stays.
    assert len(kgctl.rows("undo", first, "--execute")) == 1
    assert offsets_of(kgctl, others) == {1: 2}


def test_a_leader_epoch_comes_back_unless_the_partition_does_not_have_it(kgctl: Kgctl, topic: str) -> None:
    """Consumers wait for a leader epoch that a topic, created again, does not have yet."""
    group = fresh("g")
    wanted = {TopicPartition(topic, 0): Committed(5, 0, "m"), TopicPartition(topic, 1): Committed(6, 77, "n")}
    with kgctl.admin() as admin:
        admin.run(commit_each(admin.cluster, {group: wanted}))
        assert kgctl("groups", "delete", group, "--execute").exit_code == 0
        assert kgctl("undo", "--execute").exit_code == 0
        (found,) = admin.committed([group]).values()
    assert found == {TopicPartition(topic, 0): Committed(5, 0, "m"), TopicPartition(topic, 1): Committed(6, None, "n")}


def test_a_plan_goes_into_a_pipe_and_does_not_replace_it(our_cluster: Cluster, tmp_path: Path) -> None:
    ours = Kgctl(our_cluster.bootstrap_servers)
    topic, group, pipe = fresh("t"), fresh("g"), tmp_path / "pipe"
    assert ours("topics", "create", topic, "--no-journal").exit_code == 0
    ours.commit(group, topic, p0=0)
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    assert ours("groups", "delete", group, "--plan", pipe).exit_code == 0
    assert json.loads(os.read(reader, 1 << 16))["verb"] == "delete"
    os.close(reader)
    assert pipe.is_fifo()
    missing = ours("groups", "delete", group, "--plan", tmp_path / "absent" / "p.json")
    assert (missing.exit_code, "there is no directory" in missing.stderr) == (2, True)


def test_an_undo_is_taken_back_by_its_own_id_and_not_by_default(kgctl: Kgctl, topic: str, group: str) -> None:
    assert kgctl("groups", "reset-offsets", group, "--all-topics", "--to-latest", "--execute").exit_code == 0
    assert kgctl("undo", "--execute").exit_code == 0
    redo = newest(kgctl, group)
    assert redo["verb"] == "undo"
    assert kgctl("undo", redo["id"], "--execute").exit_code == 0
    assert offsets_of(kgctl, group) == {0: 100, 1: 50}


def test_undo_without_an_id_goes_back_one_change_at_a_time(kgctl: Kgctl, topic: str, group: str) -> None:
    for place in ("--to-latest", "--to-earliest"):
        assert kgctl("groups", "reset-offsets", group, "--all-topics", place, "--execute").exit_code == 0
    assert kgctl("undo", "--execute").exit_code == 0
    assert offsets_of(kgctl, group) == {0: 100, 1: 50}
    assert kgctl("undo", "--execute").exit_code == 0
    assert offsets_of(kgctl, group) == {0: 10, 1: 20}


def test_an_undo_of_offsets_that_moved_since_needs_force(kgctl: Kgctl, topic: str, group: str) -> None:
    assert kgctl("groups", "reset-offsets", group, "--all-topics", "--to-latest", "--execute").exit_code == 0
    name = newest(kgctl, group)["id"]
    kgctl.commit(group, topic, p1=30)
    refused = kgctl("undo", name, "--execute")
    assert refused.exit_code == 6
    assert f"group {group!r}, {topic}-1: committed 30 now, not 50 as the change left it" in refused.stderr
    assert offsets_of(kgctl, group) == {0: 100, 1: 30}
    assert kgctl("undo", name, "--force", "--execute").exit_code == 0
    assert offsets_of(kgctl, group) == {0: 10, 1: 20}


def test_the_journal_names_a_few_of_many_groups(kgctl: Kgctl, topic: str) -> None:
    groups = [fresh("g") for _ in range(5)]
    for group in groups:
        kgctl.commit(group, topic, p0=1)
    assert kgctl("groups", "delete", *groups, "--execute").exit_code == 0
    assert f" {', '.join(sorted(groups)[:3])} and 2 more " in kgctl("journal", "--group", groups[0]).stdout
    assert newest(kgctl, groups[0])["groups"] == sorted(groups)


def test_removed_members_cannot_be_brought_back(kgctl: Kgctl, topic: str, group: str) -> None:
    with member_of(kgctl, group, {topic: [0, 1]}):
        assert kgctl("groups", "remove-members", group, "--all", "--execute").exit_code == 0
        done = kgctl("undo", newest(kgctl, group)["id"])
        assert done.exit_code == 6
        assert "a removal of members cannot be undone" in done.stderr


def test_a_drained_reset_is_undone_to_the_offsets_that_it_replaced(kgctl: Kgctl, topic: str, group: str) -> None:
    with member_of(kgctl, group, {topic: [0, 1]}):
        done = kgctl("groups", "reset-offsets", group, "--all-topics", "--to-latest", "--drain", "10", "--execute")
        assert done.exit_code == 0, done.output
        undone = kgctl("undo", newest(kgctl, group)["id"], "--execute")
        assert undone.exit_code == 0
        assert "members that were evicted rejoin by themselves" in undone.stderr
        assert offsets_of(kgctl, group) == {0: 10, 1: 20}


def test_a_change_is_refused_before_it_happens_if_the_journal_cannot_be_written(
    kgctl: Kgctl, topic: str, group: str, state: Path
) -> None:
    folder = next(path for path in state.iterdir())
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
    folder.write_text("not a folder")
    for verb in (["reset-offsets", group, "--all-topics", "--to-latest"], ["delete", group]):
        done = kgctl("groups", *verb, "--execute")
        assert done.exit_code == 1
        assert f"Error: cannot write the journal in {folder}: " in done.stderr
        assert "nothing was changed" in done.stderr
        assert "--no-journal" in done.stderr
        assert len(done.stderr.splitlines()) == 1
    assert offsets_of(kgctl, group) == {0: 10, 1: 20}
    assert kgctl("groups", "delete", group, "--execute", "--no-journal").exit_code == 0


def test_a_journal_that_cannot_be_read_is_one_line(our_cluster: Cluster, state: Path) -> None:
    ours = Kgctl(our_cluster.bootstrap_servers)
    topic = fresh("t")
    assert ours("topics", "create", topic, "--no-journal").exit_code == 0
    ours.commit(fresh("g"), topic, p0=0)
    (folder,) = state.iterdir()
    (folder / "journal.jsonl").unlink()
    (folder / "journal.jsonl").mkdir()
    for command in (["undo"], ["journal"]):
        done = ours(*command)
        assert (done.exit_code, done.stderr.startswith("Error: cannot read the journal in ")) == (1, True), done.output
        assert len(done.stderr.splitlines()) == 1


def test_a_full_disk_refuses_the_change_and_leaves_whole_lines(our_cluster: Cluster, state: Path) -> None:
    ours = Kgctl(our_cluster.bootstrap_servers)
    topic, group = fresh("t"), fresh("g")
    assert ours("topics", "create", topic, "--no-journal").exit_code == 0
    ours.commit(group, topic, p0=0)
    (folder,) = state.iterdir()
    # A write beyond the limit fails, as one to a full disk does.
    limit = (folder / "journal.jsonl").stat().st_size + 40
    code = (
        f"import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))\n"
        f"from kgctl.app import app; app(['groups', 'delete', {group!r}, '--execute'])"
    )
    env = os.environ | {"KGCTL_BOOTSTRAP": our_cluster.bootstrap_servers, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=60)
    assert (done.returncode, "File too large; nothing was changed" in done.stderr) == (1, True), done.stderr
    assert offsets_of(ours, group) == {0: 0}
    assert (folder / "journal.jsonl").read_bytes().endswith(b"}\n")
    assert len(list(folder.glob("*.json"))) == 1
    assert ours("groups", "delete", group, "--execute").exit_code == 0


KILLED = """
import os, sys
from kgctl.client.admin.admin import Admin
from kgctl.journal.journal import Begun, Journal
def die(*_, **__): os.kill(os.getpid(), 9)
{patch}
from kgctl.app import app
app(sys.argv[1:])
"""
CRASHES = {
    "before the first line": "import kgctl.journal.journal as j; j.append = die",
    "between snapshot and change": "Admin.delete_groups = die",
    "between change and last line": "Begun.end = die",
}


@pytest.mark.parametrize("moment", CRASHES)
def test_whatever_moment_it_is_killed_at_undo_gives_back_what_was_there(our_cluster: Cluster, moment: str) -> None:
    ours = Kgctl(our_cluster.bootstrap_servers)
    topic, group = fresh("t"), fresh("g")
    assert ours("topics", "create", topic, "--no-journal").exit_code == 0
    ours.commit(group, topic, p0=0)
    command = ["groups", "delete", group, "--execute", "--bootstrap", our_cluster.bootstrap_servers]
    code = KILLED.format(patch=CRASHES[moment])
    assert subprocess.run([sys.executable, "-c", code, *command], timeout=60).returncode == -9
    was_changed = moment == "between change and last line"
    assert (group in [row["group"] for row in ours.rows("groups", "list")]) is not was_changed
    rows = [row for row in Kgctl().rows("journal", "--group", group) if row["verb"] == "delete"]
    if moment == "before the first line":
        assert rows == []
        return
    assert [row["outcome"] for row in rows] == ["unfinished"]
    assert [row["status"] for row in Kgctl().rows("journal", "show", rows[0]["id"])] == ["unknown"]
    undone = ours("undo", rows[0]["id"], "--execute")
    assert undone.exit_code == 0
    assert ("All committed offsets are as they were" in undone.stderr) is not was_changed
    assert offsets_of(ours, group) == {0: 0}


def test_two_processes_write_whole_lines_and_half_a_line_is_skipped(our_cluster: Cluster, state: Path) -> None:
    ours = Kgctl(our_cluster.bootstrap_servers)
    topic = fresh("t")
    assert ours("topics", "create", topic, "--no-journal").exit_code == 0
    groups = [fresh("g") for _ in range(4)]
    for group in groups:
        ours.commit(group, topic, p0=0)
    (folder,) = state.iterdir()
    with (folder / "journal.jsonl").open("ab") as file:
        file.write(b'{"id": "20260101-000000-0000", "verb": "hal')
    children = [
        subprocess.Popen(
            [sys.executable, "-m", "kgctl", "groups", "delete", group, "--execute"],
            env=os.environ | {"KGCTL_BOOTSTRAP": our_cluster.bootstrap_servers},
            stdout=subprocess.DEVNULL,
        )
        for group in groups
    ]
    assert [child.wait(60) for child in children] == [0] * 4
    rows = Kgctl().rows("journal")
    assert sorted(row["groups"][0] for row in rows if row["verb"] == "delete") == sorted(groups)
    assert {row["outcome"] for row in rows} == {"done"}


def test_the_journal_has_a_bounded_number_of_changes(our_cluster: Cluster, state: Path) -> None:
    ours = Kgctl(our_cluster.bootstrap_servers)
    topic, group = fresh("t"), fresh("g")
    assert ours("topics", "create", topic, "--no-journal").exit_code == 0
    ours.commit(group, topic, p0=0)
    (folder,) = state.iterdir()
    (first, last) = read_lines(folder)
    names = [f"20991231-{n:06}-aaaa" for n in range(MOST_ENTRIES + 60)]
    many = [first | {"id": name, "time_ms": first["time_ms"] + n} for n, name in enumerate(names)]
    old = first | {"id": "20200101-000000-aaaa", "time_ms": 1}
    (folder / "20200101-000000-aaaa.json").write_text("{}")
    (folder / "20200102-000000-bbbb.json").write_text("{}")
    os.utime(folder / "20200102-000000-bbbb.json", (1, 1))
    replace_lines(folder, [old, first, last, *many])
    assert ours("groups", "delete", group, "--execute").exit_code == 0
    rows = Kgctl().rows("journal", "-n", 5000)
    assert len(rows) == MOST_ENTRIES
    assert "20200101-000000-aaaa" not in {row["id"] for row in rows}
    assert not (folder / "20200101-000000-aaaa.json").exists()
    # What a command left that was killed before its first line.
    assert not (folder / "20200102-000000-bbbb.json").exists()


def test_the_journal_keeps_no_secrets_and_shows_one_change(our_cluster: Cluster, state: Path) -> None:
    ours = Kgctl(our_cluster.bootstrap_servers)
    topic, group = fresh("t"), fresh("g")
    assert ours("topics", "create", topic, "--no-journal").exit_code == 0
    ours.commit(group, topic, p0=0)
    entry = newest(ours, group)
    done = ours("journal", "show", entry["id"])
    assert (done.exit_code, "Outcome: done." in done.stderr) == (0, True)
    assert ours("journal", "show", "20200101-000000-0000").exit_code == 5
    files = [path for path in state.rglob("*") if path.is_file()]
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}
    assert {path.stat().st_mode & 0o777 for path in state.rglob("*") if path.is_dir()} == {0o700}


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--password", "s3", "x"], "--password '***' x"),
        (["--config", "sasl.jaas.config=abc", "a b"], "--config 'sasl.jaas.config=***' 'a b'"),
        (["ssl.keystore.key=abc", "a=1,x.ssl.keystore.key=b"], "'ssl.keystore.key=***' 'a=1,x.ssl.keystore.key=***'"),
        (["--client-secret=abc"], "'--client-secret=***'"),
        (["http://me:pw@host/"], "'http://***@host/'"),
    ],
)
def test_secrets_are_hidden_in_command_lines(words: list[str], line: str) -> None:
    from kgctl.journal.command_lines import safe_command

    assert safe_command(words) == line
