"""Every test that Kafka has of its classic groups is covered by tests of ours or has a reason why it does not apply."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.broker.cores.groups.kafka_cases import names, table
from tests.harness import ROOT


@pytest.fixture(scope="module")
def collected() -> set[str]:
    """The ids below `tests/` of all tests in the files that the table names; parametrized ones also without parameters."""
    files = sorted({"tests/" + test_id.partition("::")[0] for ids in table().covered.values() for test_id in ids})
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *files]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env={**os.environ, "PYTEST_ADDOPTS": ""})
    assert done.returncode == 0, done.stdout[-2_000:] + done.stderr
    ids = {line.removeprefix("tests/") for line in done.stdout.splitlines() if "::" in line}
    return ids | {test_id.partition("[")[0] for test_id in ids}


def test_the_table_has_exactly_kafkas_test_names() -> None:
    known, cases = names(), table()
    assert len(known) == len(set(known)) == 677
    listed = cases.covered.keys() | cases.not_applicable.keys()
    assert not set(known) - listed
    assert not listed - set(known)
    assert not cases.repeated


def test_every_reason_is_defined_and_used() -> None:
    cases = table()
    assert set(cases.not_applicable.values()) == cases.reasons.keys()
    assert all(cases.reasons.values())


def test_every_test_in_the_table_exists(collected: set[str]) -> None:
    missing = {
        test_id: name for name, test_ids in table().covered.items() for test_id in test_ids if test_id not in collected
    }
    assert not missing
