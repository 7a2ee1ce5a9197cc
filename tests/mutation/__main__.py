"""`python -m tests.mutation`: plant each fault in a copy of the tree and check that the tests catch it."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from tests.harness import ROOT
from tests.mutation.archive_faults import ARCHIVE_FAULTS
from tests.mutation.assignor_faults import ASSIGNOR_FAULTS
from tests.mutation.consumer_group_faults import CONSUMER_GROUP_FAULTS
from tests.mutation.consumer_world_faults import CONSUMER_WORLD_FAULTS
from tests.mutation.epoch_membership_faults import EPOCH_MEMBERSHIP_FAULTS
from tests.mutation.faults import FAULTS as BROKER_FAULTS
from tests.mutation.faults import Fault
from tests.mutation.fetching_faults import FETCHING_FAULTS
from tests.mutation.kgctl_faults import KGCTL_FAULTS
from tests.mutation.membership_faults import MEMBERSHIP_FAULTS
from tests.mutation.migration_faults import MIGRATION_FAULTS
from tests.mutation.network_faults import NETWORK_FAULTS
from tests.mutation.producer_faults import PRODUCER_FAULTS
from tests.mutation.share_group_faults import SHARE_GROUP_FAULTS
from tests.mutation.share_partition_faults import SHARE_PARTITION_FAULTS
from tests.mutation.share_world_faults import SHARE_WORLD_FAULTS

NOT_COPIED = shutil.ignore_patterns(".*", "__pycache__", "*.egg-info", "build")
TIMEOUT_S = 300
ALL_PASS = "no test fails"
FAULTS = (
    BROKER_FAULTS
    + KGCTL_FAULTS
    + ASSIGNOR_FAULTS
    + CONSUMER_GROUP_FAULTS
    + SHARE_GROUP_FAULTS
    + SHARE_WORLD_FAULTS
    + SHARE_PARTITION_FAULTS
    + CONSUMER_WORLD_FAULTS
    + MIGRATION_FAULTS
    + EPOCH_MEMBERSHIP_FAULTS
    + FETCHING_FAULTS
    + MEMBERSHIP_FAULTS
    + PRODUCER_FAULTS
    + NETWORK_FAULTS
    + ARCHIVE_FAULTS
)


class Verdict(NamedTuple):
    caught: bool
    by: str


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("--only", default="", help="only faults with this text in their name or file, such as kgctl/")
    parser.add_argument("--tests", nargs="*", help="run these tests instead of those of each fault")
    given = parser.parse_args()
    chosen = [fault for fault in FAULTS if given.only in f"{fault.name} {fault.file}"]
    caught, suites = 0, dict.fromkeys(tuple(given.tests or fault.tests) for fault in chosen)
    with tempfile.TemporaryDirectory() as directory:
        tree = Path(directory) / "tree"
        shutil.copytree(ROOT, tree, ignore=NOT_COPIED)
        for suite in suites:
            verdict = _run(tree, list(suite))
            if verdict.by != ALL_PASS:
                print(f"without a fault, {verdict.by} fails: fix that first")
                return 2
        for fault in chosen:
            began = time.perf_counter()
            verdict = try_fault(tree, fault, given.tests or list(fault.tests))
            caught += verdict.caught
            word = "caught  " if verdict.caught else "SURVIVES"
            print(f"{word} {time.perf_counter() - began:4.0f} s  {fault.name}  <- {verdict.by}", flush=True)
    print(f"{caught} of {len(chosen)} faults are caught")
    return 0 if caught == len(chosen) else 1


def try_fault(tree: Path, fault: Fault, tests: list[str]) -> Verdict:
    """Plant the fault in the tree, run the tests until one fails, and restore the original text."""
    path = tree / fault.file
    text = path.read_text()
    try:
        path.write_text(planted(text, fault))
    except ValueError as error:
        return Verdict(False, str(error))
    try:
        return _run(tree, tests)
    finally:
        path.write_text(text)


def planted(text: str, fault: Fault) -> str:
    """The text with the fault. ValueError unless the original snippet occurs exactly once."""
    if text.count(fault.right) != 1:
        raise ValueError(
            f"the fault does not apply: its snippet occurs {text.count(fault.right)} times in {fault.file}"
        )
    wrong = text.replace(fault.right, fault.wrong)
    compile(wrong, str(fault.file), "exec")
    return wrong


def _run(tree: Path, tests: list[str]) -> Verdict:
    # Import the copy, also in child processes, and never stale bytecode.
    environment = {**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
    shutil.rmtree(tree / ".hypothesis", ignore_errors=True)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-x",
        "-q",
        "-m",
        "not reference and not soak",
        "-p",
        "no:cacheprovider",
        *tests,
    ]
    command += ["--timeout=60", "--tb=line"]
    try:
        done = subprocess.run(
            command, cwd=tree, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=TIMEOUT_S
        )
    except subprocess.TimeoutExpired:
        return Verdict(True, f"no result within {TIMEOUT_S} s")
    output = done.stdout.decode(errors="replace")
    failed = re.search(r"^(?:FAILED|ERROR) (\S+)", output, re.MULTILINE)
    if done.returncode == 0:
        return Verdict(False, ALL_PASS)
    if failed is None:
        hung = re.search(r"Timeout \(>?[0-9.]+s\)", output)
        return Verdict(hung is not None, "a test hangs" if hung else output[-500:])
    return Verdict(True, failed[1])


if __name__ == "__main__":
    sys.exit(main())
