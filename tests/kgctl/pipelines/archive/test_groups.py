"""The file with the committed offsets of an archive."""

from __future__ import annotations

import json
import zlib
from dataclasses import asdict
from pathlib import Path

import pytest

from kgctl.pipelines.archive.groups import read_groups, write_groups
from kgctl.pipelines.archive.layout import GroupOffset, GroupsSnapshot

KNOWN = GroupOffset("g", "t", 0, 5, -1, "", 7000, 2, 9, "Share")
UNKNOWN = GroupOffset("g", "t", 1, 5, 3, "m", None, None, None)


def test_what_is_not_known_stays_so(tmp_path: Path) -> None:
    assert read_groups(tmp_path) is None
    snapshot = GroupsSnapshot(1000, (KNOWN, UNKNOWN))
    write_groups(tmp_path, snapshot)
    assert read_groups(tmp_path) == snapshot


@pytest.mark.parametrize("version", [1, 2])
def test_older_formats_wrote_other_values_for_what_is_not_known(tmp_path: Path, version: int) -> None:
    old = {**asdict(UNKNOWN), "log_start": 0, "log_end": 5}
    content = {"format": version, "taken_ms": 1000, "offsets": [asdict(KNOWN), old]}
    content["crc32"] = zlib.crc32(json.dumps(content, sort_keys=True).encode())
    (tmp_path / "groups.json").write_text(json.dumps(content))
    assert read_groups(tmp_path) == GroupsSnapshot(1000, (KNOWN, UNKNOWN))
