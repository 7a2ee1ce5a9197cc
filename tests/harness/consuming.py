"""Topics for groups to read, and what `kgctl groups describe` says about the groups."""

from __future__ import annotations

from typing import Any

from tests.harness.clusters import fresh
from tests.harness.commandline import Kgctl


def filled(kgctl: Kgctl, stem: str = "p") -> str:
    """Three partitions with ten records each: p0-0, p0-1, ..."""
    topic = fresh("shared")
    assert kgctl("topics", "create", topic, "--partitions", 3).exit_code == 0
    more(kgctl, topic, stem)
    return topic


def more(kgctl: Kgctl, topic: str, stem: str) -> None:
    for partition in range(3):
        text = "".join(f"{stem}{partition}-{n}\n" for n in range(10))
        assert kgctl("produce", topic, "--partition", partition, text=text).exit_code == 0


def written(stem: str = "p") -> set[str]:
    return {f"{stem}{partition}-{n}" for partition in range(3) for n in range(10)}


def rows(kgctl: Kgctl, group: str, view: str) -> list[dict[str, Any]]:
    result = kgctl("groups", "describe", group, view, "-o", "json")
    return kgctl.rows("groups", "describe", group, view) if result.exit_code == 0 else []


def committed(kgctl: Kgctl, group: str) -> dict[int, int | None]:
    return {row["partition"]: row["current_offset"] for row in rows(kgctl, group, "--offsets")}


def owners(kgctl: Kgctl, group: str) -> dict[int, str | None]:
    return {row["partition"]: row["consumer_id"] for row in rows(kgctl, group, "--offsets")}


def state(kgctl: Kgctl, group: str) -> str | None:
    return next((row["state"] for row in rows(kgctl, group, "--state")), None)
