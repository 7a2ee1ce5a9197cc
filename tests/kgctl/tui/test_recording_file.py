"""The file of a recording: who may read it, what damage does to it, and what it never holds."""

from __future__ import annotations

import asyncio
import gzip
import json
import resource
import tracemalloc
import zlib
from pathlib import Path

import pytest

from broker.light_dataclasses import replace
from kgctl.client.net.errors import BadValue, Unreachable
from kgctl.model.watched import Snapshot
from kgctl.tui.cluster_label import ClusterLabel
from kgctl.tui.feed.delta import diff, patched
from kgctl.tui.feed.groups import AllGroups
from kgctl.tui.feed.read import parts
from kgctl.tui.feed.recording import WAITING, record_to
from kgctl.tui.feed.recording_file import RecordingWriter
from kgctl.tui.feed.replay import Recording, ReplayFeed
from kgctl.tui.replay.moments import place_at
from tests.kgctl.tui import snapshots
from tests.kgctl.tui.prepared import PreparedFeed
from tests.kgctl.tui.recorded import incident

LABEL = ClusterLabel("10.0.0.1:9092", "production", "red", options=("--context", "production"))


def recorded(path: Path, count: int = 12) -> None:
    async def go() -> None:
        found = incident(count)
        feed = record_to(path, PreparedFeed(found, cluster=LABEL))
        for _ in found:
            await feed.read(AllGroups())
        feed.close()

    asyncio.run(go())


def read(path: Path, place: int) -> object:
    feed = ReplayFeed(Recording(path))
    feed.place = place
    return asyncio.run(feed.read(AllGroups()))


def test_a_recording_has_every_answer_and_only_its_owner_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "incident"
    recorded(path)
    assert path.stat().st_mode & 0o777 == 0o600
    found = incident(12)
    assert [read(path, place) for place in range(12)] == found
    recording = Recording(path)
    assert recording.damage is None
    assert recording.cluster == ClusterLabel(LABEL.address, LABEL.context, LABEL.color)


def test_an_existing_file_is_replaced_only_with_force(tmp_path: Path) -> None:
    path = tmp_path / "incident"
    path.write_text("mine")
    path.chmod(0o644)
    with pytest.raises(BadValue, match="it exists; choose another name or pass --force"):
        record_to(path, PreparedFeed(incident(1)))
    assert path.read_text() == "mine"
    record_to(path, PreparedFeed(incident(1)), force=True).close()
    assert path.stat().st_mode & 0o777 == 0o600


def test_an_unchanged_answer_takes_a_hundred_bytes(tmp_path: Path) -> None:
    path, many = tmp_path / "quiet", 100
    everything = snapshots.snapshot(snapshots.many(300))

    async def go() -> None:
        feed = record_to(path, PreparedFeed([everything]))
        for _ in range(many):
            await feed.read(AllGroups())
        feed.close()

    asyncio.run(go())
    lines = gzip.decompress(path.read_bytes()).splitlines()
    assert len(lines) == 1 + many
    assert max(len(line) for line in lines[2:]) < 150


def test_a_recording_that_was_cut_off_plays_up_to_there(tmp_path: Path) -> None:
    path = tmp_path / "incident"
    recorded(path)
    content = path.read_bytes()
    lengths = set()
    for cut in range(len(content) // 2, len(content), 97):
        path.write_bytes(content[:cut])
        recording = Recording(path)
        assert recording.damage is not None
        assert "ends early" in recording.damage
        lengths.add(len(recording.frames))
        assert read(path, len(recording.frames) - 1) == incident(12)[len(recording.frames) - 1]
    assert len(lengths) > 3


def test_a_damaged_recording_plays_up_to_the_damage(tmp_path: Path) -> None:
    path = tmp_path / "incident"
    recorded(path)
    content, found = path.read_bytes(), incident(12)
    for place in range(600, len(content) - 10, 411):
        path.write_bytes(content[:place] + bytes([content[place] ^ 0x10]) + content[place + 1 :])
        try:
            recording = Recording(path)
        except BadValue:
            continue
        assert recording.damage is not None
        for number in range(len(recording.frames)):
            assert read(path, number) == found[number]


def test_a_line_that_reads_well_but_is_not_what_was_written_is_not_shown(tmp_path: Path) -> None:
    path = tmp_path / "incident"
    recorded(path)
    lines = gzip.decompress(path.read_bytes()).splitlines(keepends=True)
    assert b"checkout" in lines[1]
    lines[1] = lines[1].replace(b"checkout", b"chuckout", 1)
    path.write_bytes(gzip.compress(b"".join(lines)))
    with pytest.raises(BadValue, match="no frames: line 2 is damaged"):
        Recording(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is not a recording of kgctl ui"),
        (b"kgctl", "it is not a gzip file"),
        (gzip.compress(b"hello\n", mtime=0), "is not a recording of kgctl ui: line 1 is damaged"),
    ],
    ids=["empty", "text", "gzip"],
)
def test_another_file_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "other"
    path.write_bytes(content)
    with pytest.raises(BadValue, match=message):
        Recording(path)
    with pytest.raises(BadValue, match=r"cannot read .*: No such file"):
        Recording(tmp_path / "missing")


def test_a_recording_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    path, rest = tmp_path / "newer", b'"kgctl_recording":2}\n'
    path.write_bytes(gzip.compress(b'{"crc":"%08x",' % zlib.crc32(rest) + rest))
    with pytest.raises(BadValue, match="has version 2; this kgctl reads version 1"):
        Recording(path)


def test_an_error_is_recorded_as_an_answer(tmp_path: Path) -> None:
    path, (first, second) = tmp_path / "lost", incident(2)

    async def go() -> None:
        feed = record_to(path, PreparedFeed([first, Unreachable("connection refused"), second]))
        for number in range(3):
            if number == 1:
                with pytest.raises(Unreachable):
                    await feed.read(AllGroups())
            else:
                await feed.read(AllGroups())
        feed.close()

    asyncio.run(go())
    frames = Recording(path).frames
    assert [str(frame.error) for frame in frames] == ["None", "connection refused", "None"]
    assert [read(path, place) for place in range(3)] == [first, first, second]


def test_a_full_disk_stops_the_recording_and_not_the_dashboard(tmp_path: Path) -> None:
    path, found, reasons = tmp_path / "incident", incident(3), []
    unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)

    async def go() -> None:
        feed = record_to(path, PreparedFeed(found))
        feed.failed = reasons.append
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, unlimited[1]))
        assert [await feed.read(AllGroups()) for _ in found] == found
        feed.close()
        assert feed.failure == "File too large"

    try:
        asyncio.run(go())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
    assert reasons == ["File too large"]


def test_an_answer_that_cannot_be_written_ends_the_recording_and_not_the_dashboard(tmp_path: Path) -> None:
    answer: Snapshot = replace(incident(1)[0], errors=(object(),))  # type: ignore[arg-type]

    async def go() -> None:
        feed = record_to(tmp_path / "incident", PreparedFeed([answer]))
        for _ in range(WAITING + 2):
            assert await feed.read(AllGroups()) is answer
        feed.close()
        assert feed.failure is not None

    asyncio.run(go())


@pytest.mark.parametrize(
    "changed",
    [
        {"read": "?"},
        {"read": "[[],1]"},
        {"at_s": float("nan")},
        {"wall_ms": 10**30},
        {"answer": None, "error": 5},
        {"change": [0, {}]},
        {"is_answered": False},
    ],
)
def test_a_frame_that_no_dashboard_writes_is_refused(tmp_path: Path, changed: dict[str, object]) -> None:
    frame = {"at_s": 1.0, "wall_ms": 1, "read": parts(AllGroups())[0], "answer": {}} | changed
    if "is_answered" in changed:
        del frame["answer"]
    writer = RecordingWriter(tmp_path / "crafted", {"cluster": {"address": "a:1"}})
    writer.write(frame)
    writer.close()
    with pytest.raises(BadValue, match="crafted is not a valid recording: "):
        Recording(tmp_path / "crafted")


def test_times_of_a_recording(tmp_path: Path) -> None:
    path = tmp_path / "incident"
    recorded(path)
    recording = Recording(path)
    assert [place_at(recording, text) for text in ("+0s", "+19s", "+20s", "+1m50s")] == [0, 1, 2, 11]
    assert place_at(recording, str(recording.frames[3].wall_ms)) == 3
    for wrong in ("+1h", "25:99", "yesterday", "2001-01-01T00:00:00Z"):
        with pytest.raises(BadValue):
            place_at(recording, wrong)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"a": 1}, {"a": 1}),
        ({"a": 1, "b": [1, {"c": None}]}, {"b": [1, {"c": 2}], "d": {}}),
        ([1, 2], [1, 2, 3]),
        ({"a": True}, {"a": 1}),
        ({"": {"": 0}}, {"": {"": 0.5}}),
    ],
)
def test_a_change_makes_the_new_value_of_the_old_one(old: object, new: object) -> None:
    change = json.loads(json.dumps(diff(old, new)))
    made = patched(old, change)
    assert made == new
    assert json.dumps(made, sort_keys=True) == json.dumps(new, sort_keys=True)


def test_an_open_recording_takes_less_memory_than_its_text(tmp_path: Path) -> None:
    path = tmp_path / "incident"
    recorded(path, 40)
    text = len(gzip.decompress(path.read_bytes()))
    tracemalloc.start()
    try:
        recording = Recording(path)
        taken = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert len(recording.frames) == 40
    assert taken < text
