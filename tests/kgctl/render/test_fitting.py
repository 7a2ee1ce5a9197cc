"""How a table is fitted to a terminal that is too narrow for it."""

from __future__ import annotations

from dataclasses import make_dataclass

import pytest
from rich.cells import cell_len

from kgctl.model.changes import GroupChange
from kgctl.model.failure import RowError
from kgctl.model.groups import GroupListing, MemberRow, PartitionLag, StateRow, by_topic
from kgctl.model.history import GroupEventRow
from kgctl.model.pipelines import JobRow
from kgctl.model.transactions import (
    MARKER,
    HangingTransaction,
    ProducerRow,
    TransactionAbort,
    TransactionListing,
    TransactionPartition,
    TransactionRow,
)
from kgctl.render.fitting import Fitted, ellipsis_for, fit, shorten
from kgctl.render.layouts import LAYOUTS, layout_of

OWNER = "rdkafka-0d5c8a52-9d5c-4a7e-b7a5-5f0c1f6f2b11"
OWNED = PartitionLag("payments", "orders", 0, 3, 90, 100, 10, OWNER, "/10.0.0.1", "rdkafka")
LEFT = PartitionLag("audit", "orders", 0, None, 5, 100, 95, None, None, None)


def fitted(rows: list[object], kind: str, limit: int, verbose: bool = False) -> Fitted:
    return fit(rows, LAYOUTS[kind], verbose, limit)


def test_eighty_columns_hold_the_lag_and_its_owner() -> None:
    found = fitted([OWNED], "group-offsets", 80)
    assert found.text == (
        "GROUP    TOPIC  PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG CONSUMER-ID\n"
        "payments orders 0         90             100            10  rdkafka-0d…c1f6f2b11\n"
    )
    assert (found.left_out, found.shortened) == (("HOST", "CLIENT-ID"), True)


def test_rows_of_any_shape_fit_with_their_first_columns() -> None:
    names = [f"c{number}" for number in range(12)]
    row = make_dataclass("Row", names)(7, "x" * 500, *[f"{name} of this row" for name in names[2:]])
    found = fit([row], layout_of("store-query", [row]), False, 80)
    assert max(map(cell_len, found.text.splitlines())) <= 80
    assert found.left_out == ("C8", "C9", "C10", "C11")
    assert found.text.splitlines()[1].split()[0] == "7"


def test_times_of_rows_of_any_shape_are_cut_to_seconds_and_stay_whole() -> None:
    row = make_dataclass("Row", ["name", "at", "stored", "local"])
    rows = [
        row("n" * 60, "2026-01-02T03:04:05.678+00:00", "2026-01-02T03:04:05.678Z", "2026-01-02T03:04:05.678"),
        row("n", "2026-01-02T03:04:06.000+00:00", None, None),
    ]
    found = fit(rows, layout_of("store-query", rows), False, 80)
    assert [line.split()[1:] for line in found.text.splitlines()] == [
        ["AT", "STORED", "LOCAL"],
        ["2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z", "2026-01-02T03:04:05"],
        ["2026-01-02T03:04:06Z", "-", "-"],
    ]
    assert "2026-01-02T03:04:05.678+00:00" in fit(rows, layout_of("store-query", rows), False, 0).text


def test_a_column_of_times_and_other_values_is_text() -> None:
    row = make_dataclass("Row", ["name", "at"])
    rows = [row("n" * 60, "2026-01-02T03:04:05.678+00:00"), row("n", 0)]
    assert [line.split()[1] for line in fit(rows, layout_of("store-query", rows), False, 40).text.splitlines()] == [
        *("AT", "2026-01-0…678+00:00", "0")
    ]


def test_a_table_that_fits_without_kafkas_padding_is_whole() -> None:
    found = fitted([GroupListing("payments", "Classic", "Stable", "consumer")], "groups-listed", 36)
    assert found.text == "GROUP    TYPE    STATE  PROTOCOL\npayments Classic Stable consumer\n"
    assert (found.left_out, found.shortened) == ((), False)


def test_the_tables_of_all_groups_have_the_same_columns() -> None:
    found = fitted([OWNED, LEFT], "group-offsets", 80)
    headers = [line.split() for line in found.text.splitlines() if line.startswith("GROUP")]
    assert len(headers) == 2
    assert headers[0] == headers[1]
    assert "HOST" not in headers[0]


def test_empty_columns_are_left_out_first_and_without_a_note() -> None:
    long = PartitionLag("audit-of-the-west", "orders", 0, None, 5, 100, 95, None, None, None)
    found = fitted([long], "group-offsets", 80)
    assert found.text.splitlines()[0].split() == [
        *("GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG")
    ]
    assert (found.left_out, found.shortened) == ((), False)


def test_an_unknown_lag_is_shown_even_if_no_row_has_one() -> None:
    row = PartitionLag("audit-of-the-west-and-the-east", "orders", 0, None, None, None, None, None, None, None)
    assert "LAG" in fitted([row], "group-offsets", 60).text


@pytest.mark.parametrize(("limit", "shortened"), [(64, False), (63, True)])
def test_a_table_is_shortened_only_as_far_as_needed(limit: int, shortened: bool) -> None:
    found = fitted(
        [GroupChange("a-group-with-" + "x" * 27 + "-51-letters", "Empty", "done", None)], "group-deletion", limit
    )
    assert found.shortened is shortened
    assert max(map(len, found.text.splitlines())) == limit


def test_the_group_name_is_whole_while_other_columns_can_be_left_out() -> None:
    name = "the-payments-of-the-shop-in-the-west"
    found = fitted([GroupListing(name, "Classic", "Stable", "consumer")], "groups-listed", len(name) + 20)
    assert found.text.splitlines()[1].split() == [name, "Stable", "consumer"]
    assert (found.left_out, found.shortened) == (("TYPE",), False)


@pytest.mark.parametrize("limit", [80, 100, 120, 132])
@pytest.mark.parametrize("verbose", [False, True])
def test_no_line_is_wider_than_the_terminal(limit: int, verbose: bool) -> None:
    name = "the-payments-of-a-shop-with-a-name-that-is-very-long-indeed"
    error = RowError("UNKNOWN_TOPIC_OR_PARTITION", "...")
    failed = PartitionLag(name, name, 2**31 - 1, 3, 1, 2, 1, OWNER, "/10.10.10.10", name, error=error)
    member = MemberRow(name, OWNER, "i" * 50, "/10.10.10.10", name, 12, 1000)
    state = StateRow(name, "broker-1.example.org:9092", 1, "cooperative-sticky", "CompletingRebalance", 1, 1, 3, 7, "C")
    event = GroupEventRow(
        name,
        2**40,
        2**31 - 1,
        *("rebalance_started", "rebalance timed out", name, 2**31 - 1, 300_000, 1000, 1000, 1000, 1000, 1000),
        joined=(OWNER, name),
        left=(OWNER, name),
        left_causes=("rebalance timed out", "session timed out"),
        absent=(OWNER, name),
        absent_count=2,
    )
    described = TransactionRow(
        name, 1, 2**53, 32_000, "PrepareEpochFence", 900_000, 2**41, 2**31, by_topic([(name, 0), (name, 1)]), error
    )
    kinds = {
        "group-offsets": failed,
        "group-members": member,
        "group-state": state,
        "group-history": event,
        "transactions": TransactionListing(name, 1, 2**53, "PrepareEpochFence", 2**31, 12),
        "transaction-states": described,
        "transaction-partitions": TransactionPartition(name, name, 1, 2**40, 2**40, 2**40, 9, 2**31, error),
        "hanging-transactions": HangingTransaction(name, 1, 2**40, 1, 1, 2**40, 2**41, 2**31, 9, error),
        "producers": ProducerRow(name, 1, 2**40, 1, 1, 9, 2**41, 2**40, name, error),
        "transaction-aborts": TransactionAbort(
            MARKER, name, name, 1, 2**40, 2**40, 1, 1, "PrepareEpochFence", 2**31, 60_000, "failed", error
        ),
    }
    for kind, row in kinds.items():
        for line in fitted([row], kind, limit, verbose).text.splitlines():
            assert len(line) <= limit, line


def test_a_terminal_that_is_too_narrow_for_the_minimum_gets_the_minimum() -> None:
    found = fitted([OWNED], "group-offsets", 5)
    assert found.text.splitlines()[1].split() == ["payments", "orders", "0", "90", "100", "10"]


def test_a_name_keeps_its_start_and_its_end() -> None:
    assert shorten("abcdefghij", 10, "…") == "abcdefghij"
    assert shorten("abcdefghij", 9, "…") == "abcd…ghij"
    assert shorten("abcdefghij", 4, "…") == "ab…j"
    assert shorten("abcdefghij", 4, "~") == "ab~j"


def test_sentences_continue_on_the_next_line_and_are_whole() -> None:
    rows = [JobRow("decode", ("__consumer_offsets",), ("commits",), "one two three four five six seven eight nine ten")]
    found = fitted([*rows], "pipeline-jobs", 60)
    lines = found.text.splitlines()
    assert len(lines) > 2
    assert max(map(len, lines)) <= 60
    at = lines[0].index("SUMMARY")
    assert " ".join(line[at:] for line in lines[1:]) == rows[0].summary
    assert (found.shortened, found.left_out) == (False, ())


def test_characters_of_two_columns_are_never_cut_in_half() -> None:
    text = "注文" * 10
    for width in range(3, 40):
        assert width - 2 < cell_len(shorten(text, width, "…")) <= width


@pytest.mark.parametrize(("encoding", "mark"), [("utf-8", "…"), ("ascii", "~"), ("latin-1", "~"), ("no-such", "~")])
def test_the_ellipsis_fits_the_encoding(encoding: str, mark: str) -> None:
    assert ellipsis_for(encoding) == mark


def test_a_history_keeps_whole_causes_and_shortens_times() -> None:
    row = GroupEventRow("g", 1_700_000_000_123, 12, "stable", "session timed out", None, 3000, 12, 2, 0, 1, 4, 0)
    found = fitted([row], "group-history", 80)
    (line,) = found.text.splitlines()[1:]
    assert line.startswith("11-14 22:13:20Z ")
    assert " session timed out " in line
    assert not found.shortened
    (line,) = fitted([row], "group-history", 200).text.splitlines()[1:]
    assert line.startswith("2023-11-14T22:13:20.123Z ")


def test_a_cause_with_a_long_reason_continues_on_the_next_line() -> None:
    reason = "the consumer was closed by its operator \u6ce8\u6587\u6ce8\u6587 before the upgrade"
    row = GroupEventRow("g", 0, 12, "empty", "member left", reason, 3000, 12, 0, 0, 1, None, 0)
    lines = fitted([row], "group-history", 80).text.splitlines()
    assert max(map(cell_len, lines)) <= 80
    at = lines[0].index("CAUSE")
    assert "".join(line[at:].split("  ")[0] for line in lines[1:]).replace(" ", "") == f"memberleft({reason})".replace(
        " ", ""
    )
