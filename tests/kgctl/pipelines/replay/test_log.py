"""What a replay keeps beside the archive."""

from __future__ import annotations

from pathlib import Path

import pytest

from kgctl.client.net.errors import Precondition
from kgctl.model.topic_partition import TopicPartition
from kgctl.pipelines.replay.log import OFFSETS, SETTINGS, Committed, keep_settings, kept_settings, read_log, writing
from kgctl.pipelines.replay.offset_map import Stretch
from kgctl.pipelines.tables.errors import Busy, Damaged

A, B = TopicPartition("a", 0), TopicPartition("b", 1)
FIRST = Committed({A: (0, 5), B: (2, 4)}, {A: (Stretch(0, 7, 5),), B: (Stretch(2, 0, 2),)})
BY_KEY = Committed({B: (4, 9)}, {B: ()}, {TopicPartition("a", 3): 9, TopicPartition("b", 0): 7})


def test_to_begin_again_replaces_the_log_in_one_step(tmp_path: Path) -> None:
    with writing(tmp_path) as log:
        log.append(FIRST)
        log.append(BY_KEY)
        log.finish()
    before = (tmp_path / OFFSETS).read_bytes()
    with writing(tmp_path) as log, (tmp_path / OFFSETS).open("rb") as old:
        log.forget({A})
        # Who had the file open still reads all of it: it was not changed.
        assert old.read() == before
        kept = [
            Committed({B: (2, 4)}, {B: (Stretch(2, 0, 2),)}),
            Committed({B: (4, 9)}, {B: ()}, {TopicPartition("b", 0): 7}),
        ]
        assert ([line.moves for line in log.lines], log.is_finished) == ([line.moves for line in kept], True)
        assert (read_log(tmp_path).lines, read_log(tmp_path).is_finished) == (kept, True)
        log.append(FIRST)
        assert read_log(tmp_path).lines == [*kept, FIRST]
        log.settle({A: 4, B: 9}, {A, B})
        log.append(BY_KEY)
    assert read_log(tmp_path).lines == [*kept, BY_KEY]


def test_the_ends_of_a_replay_by_key_are_known_if_all_transactions_say_them(tmp_path: Path) -> None:
    with writing(tmp_path) as log:
        log.append(BY_KEY)
        log.append(Committed({B: (9, 12)}, ends={TopicPartition("b", 0): 8, TopicPartition("b", 2): 1}))
        assert log.target_ends("b") == {0: 8, 2: 1}
        log.append(Committed({A: (0, 1)}))
        assert (log.target_ends("b"), log.target_ends("a")) == ({0: 8, 2: 1}, None)


def test_a_log_that_is_written_has_no_stretches_in_memory(tmp_path: Path) -> None:
    """With a gap every few records they would take more memory than the records that are on their way."""
    for _ in range(2):
        with writing(tmp_path) as log:
            log.append(FIRST)
            assert [line.stretches for line in log.lines] == [{}] * len(log.lines)
    assert read_log(tmp_path).lines == [FIRST] * 2


@pytest.mark.parametrize("torn", [1, 2])
def test_only_the_last_line_may_be_torn(tmp_path: Path, torn: int) -> None:
    texts = [FIRST.to_line(), BY_KEY.to_line()]
    texts[torn - 1] = texts[torn - 1][:-3] + b"\n"
    (tmp_path / OFFSETS).write_bytes(b"".join(texts))
    if torn == 2:
        assert read_log(tmp_path).lines == [FIRST]
        return
    with pytest.raises(Damaged, match="line 1 is damaged"):
        read_log(tmp_path)


def test_damaged_or_missing_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(Damaged, match=r"offsets\.log is missing"):
        read_log(tmp_path)
    (tmp_path / SETTINGS).write_text('{"format": 2}')
    with pytest.raises(Damaged, match=r"replay\.json: the settings of the replay are damaged"):
        kept_settings(tmp_path)


def test_a_second_run_names_the_first(tmp_path: Path) -> None:
    with (
        writing(tmp_path),
        pytest.raises(Busy, match=r"process \d+ runs this replay; .* give another --id"),
        writing(tmp_path),
    ):
        pass


def test_topics_that_another_run_has_added_stay(tmp_path: Path) -> None:
    """Both have read the settings before either had the lock."""
    options = {"from": "now-1h", "since_ms": 5}
    keep_settings(tmp_path, {**options, "sources": {"a": "orders"}})
    keep_settings(tmp_path, {**options, "sources": {"b": "payments"}})
    kept = kept_settings(tmp_path)
    assert kept is not None
    assert kept["sources"] == {"a": "orders", "b": "payments"}
    for other in ({**options, "sources": {"a": "payments"}}, {**options, "since_ms": 6, "sources": {}}):
        with pytest.raises(Precondition, match="another run has begun this replay meanwhile"):
            keep_settings(tmp_path, other)
    assert kept_settings(tmp_path) == kept
