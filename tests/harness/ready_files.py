"""Ready files for tests of those who read them."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from broker.ready_file import Ready


def a_ready(pid: int, data_dir: Path) -> Ready:
    return Ready(
        address="127.0.0.1:9092",
        pid=pid,
        data_dir=str(data_dir),
        log_file=str(data_dir / "broker.log"),
        durability="power",
        started_ms=1,
        unimplemented_options=["num.io.threads"],
    )


def put_ready(path: Path, ready: Ready) -> None:
    path.write_text(json.dumps(asdict(ready)))
