"""A power cut at any moment of a migration loses nothing, with durability "process" too."""

from __future__ import annotations

import random
import shutil
import tarfile
from pathlib import Path

import pytest

from broker.storage import FileOps
from tests.broker.storage.power import RecordingOps
from tests.harness.stores import open_log


class LaterOps(FileOps):
    """The disk after the power cut."""

    boot_id = b"after the cut"


def ends(path: Path, *, lossless: bool) -> dict[tuple[str, int], int]:
    log = open_log(path, file_ops=LaterOps())
    try:
        assert not (log.losses and lossless)
        partitions = [(topic.name, index) for topic in log.topics.values() for index in range(topic.partition_count)]
        found = {key: log.partition(*key) for key in partitions if not log.topics[key[0]].internal}
        return {key: partition.log_end_offset for key, partition in found.items() if partition is not None}
    finally:
        log.close(clean=False)


@pytest.mark.parametrize(
    ("version", "durability"), [(1, "process"), (4, "power"), (4, "process"), (6, "process"), (7, "power")]
)
def test_an_older_format_survives_every_power_cut_of_its_migration(
    tmp_path: Path, version: int, durability: str
) -> None:
    with tarfile.open(Path(__file__).with_name(f"format_{version}.tar.xz")) as archive:
        archive.extractall(tmp_path / "live", filter="data")
    (live,) = [path.parent for path in (tmp_path / "live").rglob("store.db")]
    shutil.copytree(live, tmp_path / "copy")
    expected = ends(tmp_path / "copy", lossless=True)
    assert any(expected.values())
    ops = RecordingOps(live)
    before = len(ops.events)
    open_log(live, file_ops=ops, durability=durability).close(clean=False)
    randomness = random.Random(1)
    for cut in range(before, len(ops.events) + 1):
        ops.image(cut, tmp_path / "image", randomness)
        assert ends(tmp_path / "image", lossless=durability == "power") == expected, cut
        shutil.rmtree(tmp_path / "image")
