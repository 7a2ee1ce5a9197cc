"""Recordings of walks of share groups: a header, and a line for each walk.

A walk has the settings of its Kafka, and the topics that it creates with their ids: the assignor's results depend on them, so the core
gets the same. Requests are the bytes that were sent; answers have their lists sorted, because Kafka orders them by hash tables; records
are the bytes that `__consumer_offsets` got.
"""

from __future__ import annotations

import json
import lzma
from pathlib import Path
from typing import Any

from broker.protocol.wire_types import Struct

FORMAT = "share-group-walks 1"
RECORDINGS = Path(__file__).parent / "recordings"
RECORDING = RECORDINGS / "share-4.1.jsonl.xz"
TIMED = RECORDINGS / "timed-4.1.jsonl.xz"
CLIENT_ID = "walker"
Walk = dict[str, Any]
Step = dict[str, Any]


def write(path: Path, walks: list[Walk]) -> None:
    lines = "".join(json.dumps(one, separators=(",", ":")) + "\n" for one in ({"format": FORMAT}, *walks))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(lzma.compress(lines.encode(), preset=9))


def read(path: Path) -> list[Walk]:
    header, *walks = map(json.loads, lzma.decompress(path.read_bytes()).decode().splitlines())
    assert header["format"] == FORMAT, f"{path}: {header['format']}"
    return walks


def plain(value: Any, name: str = "") -> Any:
    """An answer or a request as JSON."""
    if isinstance(value, Struct):
        names = [field.name for field in type(value).FIELDS if field.name != "throttle_time_ms"]
        return {name: plain(getattr(value, name), name) for name in names}
    if isinstance(value, list):
        return sorted((plain(one) for one in value), key=lambda one: json.dumps(one, sort_keys=True))
    if isinstance(value, bytes | memoryview):
        return bytes(value).hex()
    return value
