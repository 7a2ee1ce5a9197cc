"""A recording of a matrix: one line of JSON for each case and sender, with the versions that have the same answer together."""

from __future__ import annotations

import gzip
import json
from itertools import groupby
from pathlib import Path
from typing import Any

from tests.harness.authorization.cases import CASES
from tests.harness.authorization.matrix import Answers

PATH = Path(__file__).parent / "kafka-4.1.jsonl.gz"


def save(answers: Answers, path: Path = PATH) -> None:
    lines = [
        json.dumps([case, sender, [[len(list(same)), json.loads(text)] for text, same in groupby(map(_text, rows))]])
        for case, senders in answers.items()
        for sender, rows in senders.items()
    ]
    # Without a time in it, equal recordings are equal files.
    path.write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode(), mtime=0))


def load(path: Path = PATH) -> Answers:
    answers: Answers = {}
    for line in gzip.decompress(path.read_bytes()).decode().splitlines():
        case, sender, runs = json.loads(line)
        answers.setdefault(case, {})[sender] = [fact for times, fact in runs for _ in range(times)]
    return answers


def differences(recorded: Answers, found: Answers) -> list[str]:
    """Where the answers differ, in words."""
    first = {str(case): case.all_versions().start for case in CASES}
    recorded = {case: recorded[case] for case in recorded if case in first}
    return [
        f"{case} v{first[case] + number} of {sender}:\n  recorded {_text(old)}\n  found    {_text(new)}"
        for case in sorted(recorded.keys() | found.keys())
        for sender in sorted(recorded.get(case, {}).keys() | found.get(case, {}).keys())
        for number, (old, new) in enumerate(_pairs(recorded.get(case, {}), found.get(case, {}), sender))
        if old != new
    ]


def _pairs(recorded: dict[str, list[Any]], found: dict[str, list[Any]], sender: str) -> list[tuple[Any, Any]]:
    old, new = recorded.get(sender, []), found.get(sender, [])
    longest = max(len(old), len(new))
    return list(zip(old + ["nothing"] * (longest - len(old)), new + ["nothing"] * (longest - len(new)), strict=True))


def _text(fact: Any) -> str:
    return json.dumps(fact, sort_keys=True)
