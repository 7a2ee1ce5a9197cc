"""`kgctl pipeline sql`, and the same views in Spark."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kgctl.client.net.errors import BadValue, NotFound
from kgctl.pipelines import views
from kgctl.pipelines.schemas import TABLES
from kgctl.pipelines.schemas.groups import HEALTH, LAG, REBALANCES
from kgctl.pipelines.tables.manifest import TableFolder
from kgctl.pipelines.views.declared import VIEWS
from kgctl.pipelines.views.query import run_query
from tests.harness.commandline import Kgctl
from tests.kgctl.pipelines.report.tables import commit

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HOUR = 3_600_000
KGCTL = Kgctl()


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("sql") / "facts's"
    for number in (1, 2):
        commit(
            out,
            LAG.name,
            [
                {"group": "orders", "topic": "t", "part": part, "at": number * HOUR, "lag": number * 10 + part}
                for part in (0, 1)
            ],
            f"lag-{number}",
        )
        health = [("slow", 0, "LAGGING", 7), ("slow", 1, "OK", 0), ("fine", 0, "OK", 0), ("dead", 0, "STOPPED", 3)]
        commit(
            out,
            HEALTH.name,
            [
                {"group": group, "topic": "t", "part": part, "at": number * HOUR, "status": status, "lag": lag}
                for group, part, status, lag in (health if number == 2 else health[:1])
            ],
            f"evaluate-{number}",
        )
    commit(out, REBALANCES.name, [{"group": "orders", "generation": n, "ended": n * HOUR} for n in range(1, 121)])
    return out


def rows(out: Path, sql: str) -> list[tuple[Any, ...]]:
    return [tuple(getattr(row, name) for name in row.__dataclass_fields__) for row in run_query(out, sql).rows]


def test_every_table_and_view_has_the_columns_that_are_declared(out: Path) -> None:
    for table in TABLES.values():
        assert [row[0] for row in rows(out, f'describe "{table.name}"')] == list(table.column_names)
    for view in VIEWS:
        assert [row[0] for row in rows(out, f"describe {view.name}")] == list(view.columns)
    assert rows(out, "select count(*) from commits") == [(0,)]


def test_views_answer_their_questions(out: Path) -> None:
    assert rows(out, 'select "group", part, lag, "at" from lag_now order by part') == [
        ("orders", 0, 20, "1970-01-01T02:00:00.000+00:00"),
        ("orders", 1, 21, "1970-01-01T02:00:00.000+00:00"),
    ]
    assert rows(out, 'select * exclude ("at") from worst_groups') == [
        ("dead", "STOPPED", 1, 1, 3),
        ("slow", "LAGGING", 1, 2, 7),
        ("fine", "OK", 0, 1, 0),
    ]
    newest = rows(out, "select generation from last_rebalances")
    assert newest == [(generation,) for generation in range(120, 20, -1)]


def test_spark_has_the_same_views(out: Path, spark: SparkSession) -> None:
    names = views.register(spark, out)
    assert names == [*TABLES, *(view.name for view in VIEWS)]
    for view in VIEWS:
        assert tuple(spark.table(view.name).columns) == view.columns
    found = spark.sql("select `group`, status, unhealthy, partitions, lag from worst_groups").collect()
    assert [tuple(row) for row in found] == rows(out, 'select * exclude ("at") from worst_groups')
    assert spark.table("lag_now").count() == 2


def test_values_that_json_lacks_are_texts(out: Path) -> None:
    sql = (
        "select [1, 2] as list, {'a': [date '2024-01-01']} as struct, 'a'::blob as bytes, 1.50 as number, 1.0 as whole"
    )
    assert rows(out, sql) == [("[1, 2]", '{"a": ["2024-01-01"]}', "x'61'", 1.5, 1)]


def test_numbers_that_json_lacks_are_texts(out: Path) -> None:
    sql = "select 'inf'::double as inf, '-inf'::float as less, 'nan'::double as nan, ['nan'::double, 1.5] as list"
    assert rows(out, sql) == [("inf", "-inf", "nan", '["nan", 1.5]')]
    shown = KGCTL("pipeline", "sql", sql, "--out", out, "-o", "json").stdout
    assert "Infinity" not in shown
    assert "NaN" not in shown


@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
def test_a_statement_that_is_not_utf_8_is_one_line(out: Path, locale: str) -> None:
    command = [sys.executable, "-m", "kgctl", "pipeline", "sql", "--out", str(out)]
    for statement in ([b"select '\xff'"], ["-"]):
        environment = {**os.environ, "LC_ALL": locale, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
        failed = subprocess.run(
            [*command, *statement], input=b"select '\xff'", capture_output=True, env=environment, check=False
        )
        assert (failed.returncode, failed.stdout) == (2, b"")
        assert failed.stderr == b"Error: the query fails: the statement is not text in UTF-8\n"


def test_times_after_the_year_9999_are_texts(out: Path) -> None:
    assert rows(out, "select timestamptz '20000-01-01 00:00:00+00' as at, 1 as one") == [
        ("20000-01-01 00:00:00.000000Z", 1)
    ]


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("selec 1", "Parser Error: syntax error at or near"),
        ("select group, lag from f_lag", 'near ","; the column is "group", in double quotes'),
        ("select 1 from f_lag order by at desc", 'near "desc"; the column is "at", in double quotes'),
        ("select nope from f_lag", 'column "nope" not found'),
        ("", "only one SELECT is allowed"),
        ("select 1; select 2", "only one SELECT is allowed"),
        ("copy (select 1) to '{out}/x.parquet'", "only one SELECT is allowed"),
        ("create table x as select 1", "only one SELECT is allowed"),
        ("insert into f_lag select * from f_lag", "only one SELECT is allowed"),
        ("attach '{out}/x.db'", "only one SELECT is allowed"),
        ("install httpfs", "only one SELECT is allowed"),
        ("set enable_external_access = true", "only one SELECT is allowed"),
        ("explain analyze copy (select 1) to '{out}/x.parquet'", "only one SELECT is allowed"),
        ("select * from read_text('/etc/passwd')", 'Cannot access file "/etc/passwd"'),
        ("select * from '{out}/../other.parquet'", "Cannot access"),
        ("select * from read_parquet('http://127.0.0.1:1/x')", "Cannot access file"),
        ("select * from rows", "rows does not exist"),
        (
            "select 1 as a, [date '10000-01-01'] as b",
            "column b has times outside the years 1 to 9999: cast it to varchar",
        ),
    ],
)
def test_a_bad_statement_is_one_line_and_changes_nothing(out: Path, sql: str, message: str) -> None:
    (out.parent / "other.parquet").write_bytes((TableFolder(out / LAG.name).files()[0]).read_bytes())
    before = sorted(out.rglob("*"))
    with pytest.raises(BadValue, match="the query fails: ") as refused:
        run_query(out, sql.replace("{out}", str(out).replace("'", "''")))
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)
    assert sorted(out.rglob("*")) == before


@pytest.mark.parametrize(
    ("sql", "end"),
    [
        ("""select "group", 'at', lag desc from f_lag where "at" is not null group by all""", 'near "desc"'),
        ("select lag frm f_lag -- group at the end", 'near "f_lag"'),
        ("select lag from f_lag where topic = 'look at", "unterminated string literal"),
        ("select lag from f_lag order by at", 'near "at"; the column is "at", in double quotes'),
    ],
)
def test_only_a_word_at_which_the_parser_stopped_brings_advice(out: Path, sql: str, end: str) -> None:
    with pytest.raises(BadValue, match="the query fails: Parser Error") as refused:
        run_query(out, sql)
    assert end in str(refused.value)
    assert ("double quotes" in str(refused.value)) is ("double quotes" in end)


def test_files_below_the_folder_can_be_read(out: Path) -> None:
    quoted = str(out).replace("'", "''")
    assert rows(out, f"select count(*) from '{quoted}/f_lag/**/*.parquet'") == [(4,)]


def test_a_folder_without_tables_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="holds no tables"):
        run_query(tmp_path, "select 1")


def test_the_verb_shows_rows_as_tables_json_and_csv(out: Path) -> None:
    sql = 'select "group", max(lag) as lag from f_lag group by all'
    shown = KGCTL("pipeline", "sql", sql, "--out", out)
    assert (shown.exit_code, shown.stdout.split(), shown.stderr) == (0, ["GROUP", "LAG", "orders", "21"], "")
    assert KGCTL("pipeline", "sql", sql, "--out", out, "-o", "csv").stdout == "group,lag\norders,21\n"
    none = KGCTL("pipeline", "sql", f"select * from ({sql}) where lag > 99", "--out", out, "-o", "csv")
    assert none.stdout == "group,lag\n"
    assert KGCTL.rows("pipeline", "sql", sql, "--out", out) == [{"group": "orders", "lag": 21}]
    failed = KGCTL("pipeline", "sql", "select", "--out", out)
    assert (failed.exit_code, failed.stdout) == (2, "")
    assert failed.stderr.startswith("Error: the query fails: Parser Error: ")
    assert failed.stderr.count("\n") == 1
    listed = KGCTL.rows("pipeline", "sql", "--out", out)
    assert [row["name"] for row in listed] == [*TABLES, *(view.name for view in VIEWS)]
    assert json.loads(KGCTL("pipeline", "sql", "--out", out, "-o", "json").stdout)["kind"] == "pipeline-sql-tables"
