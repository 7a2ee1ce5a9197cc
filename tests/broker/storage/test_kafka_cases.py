"""Every test that Kafka has of transactions in its log is covered by tests of ours or has a reason why it does not apply."""

from __future__ import annotations

from tests.harness.kafka_cases import missing, names, table

FOLDER = "broker/storage"


def test_the_table_has_exactly_kafkas_test_names() -> None:
    known, cases = names(FOLDER), table(FOLDER)
    assert len(known) == len(set(known)) == 127
    listed = cases.covered.keys() | cases.not_applicable.keys()
    assert not set(known) - listed
    assert not listed - set(known)
    assert not cases.repeated


def test_every_reason_is_defined_and_used() -> None:
    cases = table(FOLDER)
    assert set(cases.not_applicable.values()) == cases.reasons.keys()
    assert all(cases.reasons.values())


def test_every_test_in_the_table_exists() -> None:
    assert not missing(table(FOLDER).covered)
