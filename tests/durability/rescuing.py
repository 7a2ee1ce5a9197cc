"""`kgctl broker rescue` on a damaged directory: all whole records come back, and what is lost is listed."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from pathlib import Path
from random import Random
from typing import Any

from tests.durability import judge
from tests.durability.damages import ENDS, MARKER, STORE, WAL, Damage
from tests.durability.images import COMPACTED, QUIET, Ledger
from tests.durability.judge import Answers, Key
from tests.durability.spawning import Nursery
from tests.harness.commandline import Kgctl

PARTLY_FAILED = 4
_LOST = re.compile(r"lost: ([0-9 ,to]+)")


def check_rescue(
    nursery: Nursery, damaged: Path, ledger: Ledger, damage: Damage, random: Random, figures: Counter[str]
) -> None:
    """Rescue a directory into another one, start a broker there, and compare. The damaged directory stays as it is."""
    into = damaged.with_name("rescued")
    if into.exists():
        return
    files, before = judge.segment_files(damaged), _content(damaged)
    done = Kgctl()("broker", "rescue", "--data-dir", damaged, "--into", into, "--execute", "-o", "json")
    assert done.exit_code in (0, PARTLY_FAILED), f"rescue failed with {done.exit_code}: {done.output[-600:]}"
    changed = {name for name, content in _content(damaged).items() if before.get(name) != content} - {"lock"}
    assert not changed, f"rescue changed {changed}"
    told, partial = _told(json.loads(done.stdout)["rows"])
    lines = done.stderr if done.stderr_bytes else done.output
    process = nursery.spawn(into, *QUIET).ready()
    with process.client() as client:
        answers = judge.examine(client, ledger, random)
    process.kill()
    assert not answers.wrong, "rescued: " + "; ".join(answers.wrong[:5])
    assert not answers.errors, f"rescued, and still refused: {answers.errors[:5]}"
    for topic in answers.missing_topics:
        topic_id = ledger.topics[topic][1].hex()
        is_described = f"segments/{topic_id}/topic.json" in before and not any(topic_id in n for n in damage.files)
        written = any(topic_id in name and content.strip(b"\0") for name, content in files.items())
        assert not is_described, f"rescue brings {topic} not back"
        assert not written or topic_id in lines, f"rescue does not name the files of {topic}: {lines[-600:]}"
    for key, known in ledger.partitions.items():
        if key[0] not in answers.missing_topics:
            whole = judge.whole_batches(files, ledger.topics[key[0]][1], key[1], known) - answers.served[key]
            assert not whole, f"rescue leaves out whole batches of {key}: {sorted(whole)}; told: {sorted(told[key])}"
            _compare(key, ledger, answers, told[key], doubt=bool(partial or ENDS in damage.files))
            figures["records rescued"] += len(answers.offsets(key, known))
    _check_offsets(damaged, ledger, intact=not damage.files & {STORE, WAL, MARKER})
    figures["rescued"] += 1


def _compare(key: Key, ledger: Ledger, answers: Answers, told: set[int], *, doubt: bool) -> None:
    known = ledger.partitions[key]
    served = answers.offsets(key, known)
    lost = known.offsets - served
    assert doubt or lost <= told or key[0] == COMPACTED, f"rescue does not tell that {key} lost {sorted(lost - told)}"
    assert not told & served, f"rescue tells that {key} lost {sorted(told & served)}, but it has them"
    assert doubt or answers.ends[key] >= known.end, f"rescued, {key} ends at {answers.ends[key]}, was {known.end}"


def _told(rows: list[dict[str, Any]]) -> tuple[dict[Key, set[int]], bool]:
    """The lost offsets that the table lists, and whether a long list is cut."""
    found: dict[Key, set[int]] = defaultdict(set)
    partial = False
    for row in rows:
        note = row["note"] or ""
        partial = partial or "more ranges" in note
        # "lost: 3 to 5; removed by cleaning, or lost: 7" tells about both.
        for ranges in _LOST.findall(note):
            found[row["topic"], row["partition"]] |= judge.spelled(ranges.removesuffix(" "))
    return found, partial


def _check_offsets(damaged: Path, ledger: Ledger, *, intact: bool) -> None:
    """Each committed offset that is listed was committed; with an undamaged store it is the last one."""
    done = Kgctl()("broker", "rescue", "--data-dir", damaged, "--offsets", "-o", "json")
    listed = {(row["group"], row["topic"], row["partition"]): row["offset"] for row in json.loads(done.stdout)["rows"]}
    for commit, offset in listed.items():
        assert offset in ledger.commits.get(commit, ()), (
            f"rescue lists offset {offset} of {commit}, which was never committed"
        )
    if intact:
        last = {commit: offsets[-1] for commit, offsets in ledger.commits.items()}
        assert listed == last, f"rescue lists {listed} instead of {last}"


def _content(directory: Path) -> dict[str, bytes]:
    return {str(p.relative_to(directory)): p.read_bytes() for p in directory.rglob("*") if p.is_file()}
