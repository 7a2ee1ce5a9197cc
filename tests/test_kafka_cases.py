"""Every test that Kafka has of its coordinators, fetch sessions, log and clients has tests of ours or a reason."""

from __future__ import annotations

import pytest

from tests.harness.kafka_cases import CollectedTests, names, table

# The number of Kafka's tests in each folder.
COUNTS = {
    "broker/cores/fetch_sessions": 25,
    "broker/cores/groups": 677,
    "broker/cores/share": 541,
    "broker/cores/telemetry": 36,
    "broker/cores/groups/assignors": 54,
    "broker/cores/groups/consumer": 116,
    "broker/cores/groups/share": 130,
    "broker/cores/transactions": 191,
    "broker/storage": 127,
    "kgctl/client/consumer/assignors": 93,
    "kgctl/client/consumer/fetching": 420,
    "kgctl/client/consumer/membership": 263,
    "kgctl/client/network": 91,
    "kgctl/client/producer": 346,
}

every_folder = pytest.mark.parametrize("folder", COUNTS)


@every_folder
def test_the_table_has_exactly_kafkas_test_names(folder: str) -> None:
    known, cases = names(folder), table(folder)
    assert len(known) == len(set(known)) == COUNTS[folder]
    listed = cases.covered.keys() | cases.not_applicable.keys()
    assert not set(known) - listed
    assert not listed - set(known)
    assert not cases.repeated


@every_folder
def test_every_reason_is_defined_and_used(folder: str) -> None:
    cases = table(folder)
    assert set(cases.not_applicable.values()) == cases.reasons.keys()
    assert all(cases.reasons.values())


def test_every_test_in_the_tables_exists(collected_tests: CollectedTests) -> None:
    named = {test_id: case for folder in COUNTS for case, ids in table(folder).covered.items() for test_id in ids}
    known = collected_tests.of_files({test_id.partition("::")[0] for test_id in named})
    assert {test_id: case for test_id, case in named.items() if test_id not in known} == {}
