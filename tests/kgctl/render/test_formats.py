"""Names, JSON lines, templates and paths; which columns are shown, and in which order the rows."""

from __future__ import annotations

import io
import json
import sys

import pytest

from kgctl.model.groups import GroupListing, MemberRow, PartitionLag, TopicPartitions
from kgctl.render import show
from kgctl.render.columns import Column, Layout, Shown
from kgctl.render.formats import check, check_fields
from kgctl.render.layouts import LAYOUTS
from kgctl.render.program import BadFormat
from kgctl.render.selection import BadColumn, Selection, SortKey, parse_sort, parts_of
from kgctl.render.table import table

LAGS = [
    PartitionLag("shop", "orders", 0, 3, 90, 100, 10, "app-1", "/10.0.0.1", "app"),
    PartitionLag("shop", "orders", 1, None, None, 7, None, None, None, None),
    PartitionLag("shop", "views", 0, None, 9, 120, 111, None, None, None),
]
EVIL = GroupListing("a\x1b[31m\nb", "Classic", None, None)


def shown(capsys: pytest.CaptureFixture[str], rows: list[object], kind: str, output: str, **selected: object) -> str:
    show(rows, output, kind=kind, selection=Selection(**selected))  # type: ignore[arg-type]
    return capsys.readouterr().out


def lags(capsys: pytest.CaptureFixture[str], output: str, **selected: object) -> str:
    return shown(capsys, [*LAGS], "group-offsets", output, **selected)


def test_names_are_printed_once_each_on_a_line_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    assert lags(capsys, "name") == "shop\n"
    member = MemberRow("g", "m-1", None, "/1", "app", 2, 7)
    assert shown(capsys, [member], "group-members", "name") == "m-1\n"
    assert shown(capsys, [EVIL], "groups-listed", "name") == "a\\x1b[31m\\nb\n"
    assert shown(capsys, [], "groups-listed", "name") == ""


def test_json_lines_are_the_rows_of_the_envelope(capsys: pytest.CaptureFixture[str]) -> None:
    rows = json.loads(lags(capsys, "json"))["rows"]
    assert [json.loads(line) for line in lags(capsys, "jsonl").splitlines()] == rows


def test_a_template_without_rows_is_rendered_for_each_row(capsys: pytest.CaptureFixture[str]) -> None:
    assert lags(capsys, "template={{topic}}-{{partition}}\\t{{lag}}") == "orders-0\t10\norders-1\t\nviews-0\t111\n"
    assert lags(capsys, "template={{ row.lag or '?' }}") == "10\n?\n111\n"
    owned = MemberRow("g", "m", None, "/1", "app", 1, 7, current_assignment=(TopicPartitions("t", (0,)),), leader=True)
    text = shown(capsys, [owned], "group-members", "template={{current_assignment}} {{leader}}")
    assert text == '[{"topic": "t", "partitions": [0]}] true\n'


def test_a_template_with_rows_is_rendered_once(capsys: pytest.CaptureFixture[str]) -> None:
    text = "template={{kind}} {{rows | length}} {{rows | map(attribute='lag') | select | sum}} {{errors}}"
    assert lags(capsys, text) == "group-offsets 3 121 []\n"
    assert shown(capsys, [], "groups-listed", "template={% for row in rows %}{{row.group}}{% endfor %}") == ""


def test_a_template_can_be_a_file(capsys: pytest.CaptureFixture[str], tmp_path: object) -> None:
    path = f"{tmp_path}/lag.j2"
    with open(path, "w") as file:
        file.write("{% for row in rows %}\n{{ row.topic }}\\n\n{% endfor %}\n")
    assert lags(capsys, f"template-file={path}") == "orders\\n\norders\\n\nviews\\n\n"


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("jsonpath=$.rows[*].lag", "10\nnull\n111\n"),
        ("jsonpath=.rows[?@.lag > 20].topic", "views\n"),
        ("jsonpath={.rows[0]['group','partition']}", "shop\n0\n"),
        ("jsonpath=$.errors", "[]\n"),
        ("jsonpath=$.none", ""),
    ],
)
def test_a_path_prints_each_match_on_a_line(capsys: pytest.CaptureFixture[str], output: str, expected: str) -> None:
    assert lags(capsys, output) == expected


@pytest.mark.parametrize(
    ("output", "why"),
    [
        ("xml", "'xml' is not one of table, wide, name, json, jsonl, yaml, csv, template=TEXT"),
        ("template", "template needs a value: template=TEXT"),
        ("json=x", "'json=x' is not one of"),
        ("template=a\n{{ b", "line 2: unexpected end of template"),
        ("template={{ a | nonsense }}", "line 1: No filter named 'nonsense'"),
        ("template-file=/nowhere/x", "cannot read '/nowhere/x': No such file"),
        ("jsonpath=.rows[", "unexpected end of query, at character 7"),
        ("jsonpath=$.rows[?@.lag ! 1]", "at character 15"),
    ],
)
def test_a_bad_format_says_what_is_wrong_and_where(output: str, why: str) -> None:
    with pytest.raises(BadFormat) as caught:
        check(output)
    assert why in str(caught.value)
    assert str(caught.value).endswith(".")


def test_a_field_that_no_row_has_is_found_without_rows() -> None:
    with pytest.raises(BadFormat, match="'lagg' is not a field of a row: group, lag"):
        check_fields("template={{lagg}}", ["group", "lag"])
    check_fields("template={{row.lagg}} {{kind}}", ["group"])
    check_fields("template={{rows}} {{lagg}}", ["group"])


@pytest.mark.parametrize(
    "text",
    [
        "{{ row.__class__.__mro__ }}",
        "{{ rows.append(1) }}",
        "{% include '/etc/passwd' %}",
        "{{ row.nothing }}",
        "{{ lag + 1 }}",
        "{{ rows }}{{ nothing }}",
    ],
)
def test_a_template_sees_only_the_answer(capsys: pytest.CaptureFixture[str], text: str) -> None:
    with pytest.raises(BadFormat, match="the template, line 1: "):
        lags(capsys, f"template={text}")
    assert capsys.readouterr().out == ""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    "output", ["name", "yaml", "csv", "jsonl", "jsonpath=$..group", "template={{group}}\t{{type}}"]
)
def test_no_format_sends_a_control_character_to_a_terminal(monkeypatch: pytest.MonkeyPatch, output: str) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    show([GroupListing("a\x1b[31m\x9b2J\x7f\u202eb", "Classic", None, None)], output, kind="groups-listed")
    text = terminal.getvalue()
    assert all(char.isprintable() or char in "\n\t" for char in text), ascii(text)
    assert "b" in text


def test_columns_are_named_by_header_or_key_in_any_case(capsys: pytest.CaptureFixture[str]) -> None:
    text = lags(capsys, "table", columns=("lag", "Current-Offset", "group_instance_id"))
    assert [line.split() for line in text.splitlines()] == [
        ["LAG", "CURRENT-OFFSET", "GROUP-INSTANCE-ID"],
        ["10", "90", "-"],
        ["-", "-", "-"],
        ["111", "9", "-"],
    ]
    assert lags(capsys, "csv", columns=("LAG", "topic")) == "lag,topic\n10,orders\n,orders\n111,views\n"
    assert json.loads(lags(capsys, "jsonl", columns=("LAG",)).splitlines()[0]) == {"lag": 10}


def test_rows_without_a_value_are_last_in_both_directions(capsys: pytest.CaptureFixture[str]) -> None:
    for output in ("csv", "table"):
        up, down = (
            lags(capsys, output, columns=("lag",), headers=False, sort=(SortKey("LAG", descending),)).split()
            for descending in (False, True)
        )
        assert (up[:2], down[:2]) == (["10", "111"], ["111", "10"])


def test_sorted_rows_and_rows_without_headers_are_one_table(capsys: pytest.CaptureFixture[str]) -> None:
    other = PartitionLag("bank", "orders", 0, None, 1, 2, 1, None, None, None)
    assert shown(capsys, [*LAGS, other], "group-offsets", "table").count("GROUP ") == 2
    assert (
        shown(capsys, [*LAGS, other], "group-offsets", "table", sort=parse_sort("group,lag:desc")).split()[9] == "bank"
    )
    bare = shown(capsys, [*LAGS, other], "group-offsets", "table", headers=False)
    assert len(bare.splitlines()) == 4
    assert "GROUP" not in bare


def test_an_unknown_column_is_refused_with_the_known_ones() -> None:
    layouts = [LAYOUTS["groups-listed"], LAYOUTS["group-state"]]
    with pytest.raises(BadColumn, match=r"'lag' is not one of GROUP, TYPE, STATE, PROTOCOL, COORDINATOR \(ID\), "):
        Selection(columns=("lag",)).check(layouts)
    Selection(columns=("Protocol", "generation")).check(layouts)
    for parse in (parts_of, parse_sort):
        with pytest.raises(BadColumn, match="empty name"):
            parse("a,,b")
    with pytest.raises(BadColumn, match="asc or desc, not 'down'"):
        parse_sort("lag:down")


def test_wide_columns_are_in_wide_tables_only() -> None:
    layout = Layout(GroupListing, (Column("GROUP", "group"), Column("KIND", "type", shown=Shown.WIDE)))
    row = GroupListing("g", "Classic", None, None)
    assert table([row], layout).split() == ["GROUP", "g"]
    assert table([row], layout.widened()).split() == ["GROUP", "KIND", "g", "Classic"]
