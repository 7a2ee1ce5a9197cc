"""Faults of archives and replays: records that are lost, repeated or changed, and damage that is not found."""

from __future__ import annotations

from tests.mutation.faults import Fault

HERE = "tests/kgctl/pipelines/archive"
PLANS = (f"{HERE}/test_planning.py",)
SEQUENCES = (f"{HERE}/test_sequences.py",)
VERIFYING = (f"{HERE}/test_verifying.py",)
COMPARING = (f"{HERE}/test_comparing.py",)
JOINS = (f"{HERE}/test_join_plans.py", f"{HERE}/test_joining.py")
FOLLOWING = (f"{HERE}/test_joining.py",)
KILLS = (f"{HERE}/test_kills.py",)
OUTAGES = (f"{HERE}/test_outages.py",)
WITH_SPARK = (f"{HERE}/test_on_both_clusters.py",)
REPLAYS = ("tests/kgctl/pipelines/replay/test_replays.py",)
REPLAY_PARTS = ("tests/kgctl/pipelines/replay/test_pure_parts.py",)
REPLAY_KILLS = ("tests/kgctl/pipelines/replay/test_kills.py",)


def fault(name: str, path: str, right: str, wrong: str, tests: tuple[str, ...]) -> Fault:
    return Fault(name, f"pipelines/{path}", right, wrong, tests, "kgctl")


ARCHIVE_FAULTS = (
    # ---- ranges
    fault(
        "offsets that retention deleted are passed over without a hole",
        "archive/planning.py",
        "            holes.append(Hole(*partition, start, log.start, now_ms))\n",
        "",
        PLANS,
    ),
    fault(
        "an archive reads behind the end that it was given",
        "archive/planning.py",
        "        end = max(start, min(log.end, until.get(partition, log.end)))\n",
        "        end = max(start, log.end)\n",
        PLANS,
    ),
    fault(
        "a truncated log that has grown again is continued",
        "archive/planning.py",
        "        if end is not None and end < ends.get(partition, 0):\n",
        "        if end is not None and end < 0:\n",
        PLANS,
    ),
    fault(
        "a commit may hold offsets that are archived already",
        "archive/manifest.py",
        "        if one.start != end or one.end < one.start:\n",
        "        if one.start > end or one.end < one.start:\n",
        VERIFYING,
    ),
    fault(
        "a range ends one offset too early",
        "archive/run.py",
        "        yield ReadRange(*one.partition, one.start, one.end, records,",
        "        yield ReadRange(*one.partition, one.start, max(one.start, one.end - 1), records,",
        FOLLOWING,
    ),
    fault(
        "the archive does not wait for open transactions",
        "archive/run.py",
        "            committed_only=settings.isolation_level == READ_COMMITTED,\n",
        "            committed_only=False,\n",
        WITH_SPARK,
    ),
    fault(
        "a first step that failed begins at the earliest offsets",
        "archive/run.py",
        '        begins = self._begins(topics, logs, "earliest") | self._first_begins\n',
        '        begins = self._first_begins | self._begins(topics, logs, "earliest")\n',
        OUTAGES,
    ),
    fault(
        "a broker that is away ends a following archive",
        "archive/run.py",
        "                self._restarts.pause_after(cause if isinstance(cause, Exception) else failure)\n                continue\n",
        "                raise failure from cause\n",
        OUTAGES,
    ),
    # ---- records
    fault(
        "records of aborted transactions are archived",
        "archive/reading.py",
        '        "kafka.isolation.level": settings.isolation_level,\n',
        '        "kafka.isolation.level": "read_uncommitted",\n',
        FOLLOWING,
    ),
    fault(
        "headers are not archived",
        "archive/reading.py",
        '        "includeHeaders": "true",\n',
        '        "includeHeaders": "false",\n',
        FOLLOWING,
    ),
    fault(
        "tombstones are not archived",
        "archive/files.py",
        "        if not batch.num_rows:\n            return\n",
        '        batch = batch.filter(compute.is_valid(batch.column("value")))\n        if not batch.num_rows:\n            return\n',
        SEQUENCES,
    ),
    fault(
        "the records of two days are read one day after the other",
        "archive/files.py",
        "        if some and file.first_offset > last:\n            yield some\n            some = []\n        some.append(file)\n        last = max(last, file.last_offset)\n",
        "        yield [file]\n",
        SEQUENCES,
    ),
    # ---- verify
    fault(
        "verify compares sizes instead of checksums",
        "archive/verifying.py",
        "    if checksum != file.sha256:\n        size = path.stat().st_size\n",
        "    size = path.stat().st_size\n    if size != file.size:\n",
        VERIFYING,
    ),
    fault(
        "verify accepts an overlap of two commits",
        "archive/verifying.py",
        "            elif one.start < end and one.end > one.start:\n",
        "            elif one.end < end and one.end > one.start:\n",
        VERIFYING,
    ),
    fault(
        "verify does not compare headers",
        "archive/side_by_side.py",
        "    if ours.equals(theirs):\n        return []\n",
        '    ours, theirs = ours.drop_columns(["headers"]), theirs.drop_columns(["headers"])\n    if ours.equals(theirs):\n        return []\n',
        COMPARING,
    ),
    fault(
        "a file that a merge is replacing is called unknown",
        "archive/verifying.py",
        "    return {file.path for file in archive.files()} | archive.leaving\n",
        "    return {file.path for file in archive.files()}\n",
        KILLS,
    ),
    # ---- merges
    fault(
        "a merge forgets the newest leader epoch",
        "archive/join_plans.py",
        "epoch = one.leader_epoch if one.leader_epoch >= 0 else before.leader_epoch\n",
        "epoch = before.leader_epoch\n",
        JOINS,
    ),
    fault(
        "a merge repeats commits whose manifests were not deleted yet",
        "archive/joining.py",
        "        return self.begun(replace(fold, batches=stay, known=fold.known.with_ids(gone)))\n",
        "        return self.begun(replace(fold, batches=stay))\n",
        KILLS,
    ),
    fault(
        "a merge gives a damaged file a new checksum",
        "archive/joining.py",
        "        check_content(archive, file)\n",
        "        pass\n",
        JOINS,
    ),
    fault(
        "a merge deletes files that are being read",
        "archive/manifest.py",
        "    with TableFolder(records_folder(folder)).reading():\n        yield\n",
        "    yield\n",
        JOINS,
    ),
    # ---- replay
    fault(
        "a replay writes tombstones as empty values",
        "replay/reading.py",
        '        batch.column("value").to_pylist(),\n',
        '        [value or b"" for value in batch.column("value").to_pylist()],\n',
        REPLAYS,
    ),
    fault(
        "a replay drops headers without a value",
        "replay/reading.py",
        "        tuple(zip(names[start:end], values[start:end], strict=True)) if start < end else ()\n",
        "        tuple(one for one in zip(names[start:end], values[start:end], strict=True) if one[1] is not None)\n",
        REPLAYS,
    ),
    fault(
        "a replay does not check checksums",
        "replay/reading.py",
        "            check_content(archive, file)\n",
        "            pass\n",
        REPLAYS,
    ),
    fault(
        "a replay commits a position behind the next record",
        "replay/sending.py",
        "OffsetAndMetadata(end, metadata",
        "OffsetAndMetadata(end + 1, metadata",
        REPLAYS,
    ),
    fault(
        "a replay commits the position of a part of a run as that of the whole",
        "replay/records.py",
        "                self.next_offset if is_last else self.offsets[end],\n",
        "                self.next_offset,\n",
        REPLAY_PARTS,
    ),
    fault(
        "a replay commits positions without the records before them",
        "replay/sending.py",
        "        self.producer.flush()\n",
        "",
        REPLAY_KILLS,
    ),
)
