"""The CSV of `--export` and `--from-file`: `topic,partition,offset` for one group, else with the group in front."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path

from kgctl.compat.java_errors import JavaError
from kgctl.exit_codes import ERROR, NOT_FOUND
from kgctl.model.topic_partition import TopicPartition

# Kafka's writer quotes long texts, and those with a character up to the comma.
_LONGEST_UNQUOTED = 24

Plan = dict[str, dict[TopicPartition, int]]


def exported(plan: Mapping[str, Mapping[TopicPartition, int]], *, with_groups: bool) -> str:
    return "".join(
        ",".join([*([_quoted(group)] if with_groups else []), _quoted(key.topic), str(key.partition), str(offset)])
        + "\n"
        for group, offsets in plan.items()
        for key, offset in offsets.items()
    )


def read_plan(path: str, groups: list[str]) -> Plan:
    """Raises JavaError."""
    try:
        lines = Path(path).read_text(encoding="utf-8").split("\n")
    except OSError as error:
        raise JavaError("java.io.IOException", f"Unable to read file {path}", "NOT_FOUND", NOT_FOUND) from error
    while len(lines) > 1 and not lines[-1]:
        lines.pop()
    rows = list(csv.reader(lines))
    is_for_one = len(groups) == 1 and _offset_of(rows[0]) is not None and len(rows[0]) == 3
    plan: Plan = {}
    for number, row in enumerate(rows, 1):
        group, *rest = [groups[0], *row] if is_for_one else row or [""]
        offset = _offset_of(rest)
        if offset is None or len(rest) != 3:
            raise _malformed(path, number, is_for_one)
        plan.setdefault(group, {})[TopicPartition(rest[0], int(rest[1]))] = offset
    return plan


def _offset_of(row: list[str]) -> int | None:
    try:
        partition, offset = row[1:3]
        return int(offset) if int(partition) >= 0 else None
    except ValueError:
        return None


def _malformed(path: str, number: int, is_for_one: bool) -> JavaError:
    wanted = "topic,partition,offset" if is_for_one else "group,topic,partition,offset"
    kind = "com.fasterxml.jackson.dataformat.csv.CsvReadException"
    return JavaError(kind, f"{path}, line {number}: not {wanted}", "ERROR", ERROR)


def _quoted(text: str) -> str:
    if len(text) <= _LONGEST_UNQUOTED and all(char > "," for char in text):
        return text
    return '"' + text.replace('"', '""') + '"'
