"""Tables in a pipe, and the same rows as JSON, YAML and CSV."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import dataclass

import pytest
import yaml

from kgctl.model.failure import RowError
from kgctl.model.groups import GroupListing, MemberRow, PartitionLag, StateRow, TopicPartitions
from kgctl.model.topics import TopicPartitionRow, TopicRow
from kgctl.render import note, show

ORDERS = TopicPartitions("orders", (0, 1))
LAGS = [
    PartitionLag("shop", "orders", 0, 3, 90, 100, 10, "app-1", "/10.0.0.1", "app"),
    PartitionLag("shop", "orders", 1, None, None, 7, None, None, None, None),
]


def shown(
    capsys: pytest.CaptureFixture[str], rows: list[object], kind: str, output: str = "table", **more: object
) -> str:
    show(rows, output, kind=kind, **more)  # type: ignore[arg-type]
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out


def test_offsets_have_the_columns_and_widths_of_kafkas_tool(capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(capsys, LAGS, "group-offsets") == (
        "GROUP           TOPIC           PARTITION  CURRENT-OFFSET  LOG-END-OFFSET  LAG             CONSUMER-ID     HOST            CLIENT-ID\n"
        "shop            orders          0          90              100             10              app-1           /10.0.0.1       app\n"
        "shop            orders          1          -               7               -               -               -               -\n"
    )


def test_verbose_offsets_have_the_leader_epoch_where_kafkas_tool_has_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(capsys, LAGS, "group-offsets", verbose=True).splitlines()[:2] == [
        "GROUP           TOPIC           PARTITION  LEADER-EPOCH    CURRENT-OFFSET  LOG-END-OFFSET  LAG             CONSUMER-ID     HOST            CLIENT-ID",
        "shop            orders          0          3               90              100             10              app-1           /10.0.0.1       app",
    ]


def test_each_group_has_its_own_table_with_its_own_widths(capsys: pytest.CaptureFixture[str]) -> None:
    long = PartitionLag("a-group-with-a-long-name", "t", 0, None, 1, 1, 0, None, None, None)
    lines = shown(capsys, [long, LAGS[0]], "group-offsets").splitlines()
    assert [line.index("TOPIC") for line in lines if line.startswith("GROUP")] == [25, 16]
    assert lines[2] == ""


def test_columns_stay_aligned_after_characters_of_double_width(capsys: pytest.CaptureFixture[str]) -> None:
    show([TopicRow("\u6ce8\u6587" * 8, 1, 2, False), TopicRow("e\u0301", 3, 4, False)], kind="topics")
    header, wide, accented = capsys.readouterr().out.splitlines()
    # Eight pairs of characters of two columns each: 32, which is more than the least width of 30.
    assert header.index("PARTITIONS") == 33
    assert wide.index("1") == 16 + 1
    assert accented.index("3") == 33 + 1


def test_an_error_adds_its_column_to_the_table_that_has_it(capsys: pytest.CaptureFixture[str]) -> None:
    gone = PartitionLag(
        "a", "gone", 0, None, 5, None, None, None, None, None, error=RowError("UNKNOWN_TOPIC_OR_PARTITION", "...")
    )
    lines = shown(capsys, [gone, LAGS[0]], "group-offsets").splitlines()
    assert lines[0].endswith("CLIENT-ID ERROR")
    assert lines[1].endswith("-         UNKNOWN_TOPIC_OR_PARTITION")
    assert lines[3].endswith("CLIENT-ID")


def test_the_instance_id_column_is_shown_only_for_static_members(capsys: pytest.CaptureFixture[str]) -> None:
    one = MemberRow("g", "m-1", None, "/10.0.0.1", "app", 2, 7, current_assignment=(ORDERS,))
    other = MemberRow("h", "m-2", "i-2", "/10.0.0.1", "app", 0, None, current_assignment=())
    assert shown(capsys, [one, other], "group-members") == (
        "GROUP           CONSUMER-ID     HOST            CLIENT-ID       #PARTITIONS     GENERATION\n"
        "g               m-1             /10.0.0.1       app             2               7\n"
        "\n"
        "GROUP           CONSUMER-ID     GROUP-INSTANCE-ID HOST            CLIENT-ID       #PARTITIONS\n"
        "h               m-2             i-2               /10.0.0.1       app             0\n"
    )


def test_verbose_members_have_their_assignments_as_kafka_4_writes_them(capsys: pytest.CaptureFixture[str]) -> None:
    one = MemberRow(
        "g", "m-1", None, "/10.0.0.1", "app", 3, None, current_assignment=(ORDERS, TopicPartitions("views", (0,)))
    )
    assert shown(capsys, [one], "group-members", verbose=True) == (
        "GROUP           CONSUMER-ID     HOST            CLIENT-ID       #PARTITIONS     CURRENT-EPOCH   CURRENT-ASSIGNMENT   TARGET-EPOCH    TARGET-ASSIGNMENT\n"
        "g               m-1             /10.0.0.1       app             3               -               orders:0,1;views:0   -               -\n"
    )


def test_states_are_one_table_with_generation_and_type_last(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [
        StateRow("g", "127.0.0.1:9092", 1, "range", "Stable", None, None, 3, 12, "Classic"),
        StateRow("new", "127.0.0.1:9092", 1, "uniform", "Stable", 4, 4, 1, None, "Consumer"),
    ]
    assert shown(capsys, rows, "group-state") == (
        "GROUP           COORDINATOR (ID)          ASSIGNMENT-STRATEGY  STATE                #MEMBERS   GENERATION TYPE\n"
        "g               127.0.0.1:9092  (1)       range                Stable               3          12         Classic\n"
        "new             127.0.0.1:9092  (1)       uniform              Stable               1          -          Consumer\n"
    )


def test_listings_are_as_wide_as_kafkas(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [
        GroupListing("g", "Classic", "Empty", None),
        GroupListing("a-group-of-18-chars", "Share", "Stable", "share"),
    ]
    assert shown(capsys, rows, "groups-listed") == (
        "GROUP                         TYPE                 STATE                PROTOCOL\n"
        "g                             Classic              Empty                -\n"
        "a-group-of-18-chars           Share                Stable               share\n"
    )


def test_a_table_without_rows_is_its_header(capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(capsys, [], "groups-listed").split() == ["GROUP", "TYPE", "STATE", "PROTOCOL"]


@pytest.mark.parametrize(
    ("name", "harmless"),
    [
        ("red\x1b[31m", "red\\x1b[31m"),
        ("two\nlines", "two\\nlines"),
        ("\r", "\\r"),
        ("\x9b2J", "\\x9b2J"),
        ("\u202eback", "\\u202eback"),
        ("caf\u00e9 \u6771\u4eac", "caf\u00e9 \u6771\u4eac"),
    ],
)
def test_names_never_contain_terminal_control_sequences(
    capsys: pytest.CaptureFixture[str], name: str, harmless: str
) -> None:
    assert (
        shown(capsys, [GroupListing(name, None, None, None)], "groups-listed")
        .splitlines()[1]
        .startswith(harmless + " ")
    )
    note(f"group {name}")
    assert capsys.readouterr().err == f"group {harmless}\n"
    assert shown(capsys, [GroupListing(name, None, None, None)], "groups-listed", "json").isascii()


def test_json_has_a_version_a_kind_and_absent_values_as_null(capsys: pytest.CaptureFixture[str]) -> None:
    row = TopicPartitionRow("t", 0, 1, None, (1, 2), (1,), 0, 9, 9, RowError("LEADER_NOT_AVAILABLE", "..."))
    assert json.loads(shown(capsys, [row], "topic-partitions", "json")) == {
        "version": 2,
        "kind": "topic-partitions",
        "rows": [
            {
                "topic": "t",
                "partition": 0,
                "leader": 1,
                "leader_epoch": None,
                "replicas": [1, 2],
                "isr": [1],
                "log_start_offset": 0,
                "log_end_offset": 9,
                "records": 9,
                "error": "LEADER_NOT_AVAILABLE",
            }
        ],
        "errors": [{"name": "LEADER_NOT_AVAILABLE", "message": "...", "subject": {"topic": "t", "partition": 0}}],
    }
    assert json.loads(shown(capsys, [], "groups-listed", "json")) == {
        "version": 2,
        "kind": "groups-listed",
        "rows": [],
        "errors": [],
    }


def test_a_row_with_nothing_but_an_error_is_only_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    gone = PartitionLag("gone", None, None, None, None, None, None, None, None, None, error=RowError("NOT_FOUND", "."))
    answer = json.loads(
        shown(capsys, [gone, LAGS[0]], "group-offsets", "json", errors=[None, RowError("UNREACHABLE", "broker 2")])
    )
    assert [row["group"] for row in answer["rows"]] == ["shop"]
    assert answer["errors"] == [
        {"name": "NOT_FOUND", "message": ".", "subject": {"group": "gone"}},
        {"name": "UNREACHABLE", "message": "broker 2", "subject": {}},
    ]
    assert len(shown(capsys, [gone, LAGS[0]], "group-offsets", "jsonl").splitlines()) == 1
    assert len(shown(capsys, [gone, LAGS[0]], "group-offsets", "csv").splitlines()) == 3


def test_a_list_that_is_not_known_is_empty_and_not_null(capsys: pytest.CaptureFixture[str]) -> None:
    row = MemberRow("g", "m-1", None, "/1", "app", None, 7)
    (found,) = json.loads(shown(capsys, [row], "group-members", "json"))["rows"]
    assert (found["current_assignment"], found["target_assignment"], found["partitions"]) == ([], [], None)


def test_yaml_says_the_same_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    rows: list[object] = [*LAGS]
    assert yaml.safe_load(shown(capsys, rows, "group-offsets", "yaml")) == json.loads(
        shown(capsys, rows, "group-offsets", "json")
    )


def test_csv_has_a_header_and_quotes_what_needs_it(capsys: pytest.CaptureFixture[str]) -> None:
    row = MemberRow(
        "g,1", 'm"1', None, "/1", "app", 2, 7, current_assignment=(ORDERS, TopicPartitions("views", (0,))), leader=True
    )
    (read,) = csv.DictReader(io.StringIO(shown(capsys, [row], "group-members", "csv")))
    assert (read["group"], read["consumer_id"], read["group_instance_id"], read["generation"]) == (
        "g,1",
        'm"1',
        "",
        "7",
    )
    assert (read["current_assignment"], read["leader"]) == ("orders:0,1;views:0", "true")
    assert shown(capsys, [], "offset-reset", "csv").startswith("group,topic,partition,old_offset,")


def test_a_kind_without_a_layout_shows_its_fields(capsys: pytest.CaptureFixture[str]) -> None:
    @dataclass
    class Odd:
        some_name: str
        count: int | None

    assert shown(capsys, [Odd("x", None)], "odd") == "SOME-NAME COUNT\nx         -\n"
