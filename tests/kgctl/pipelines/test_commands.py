"""`kgctl pipeline` as far as it goes without Spark."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from kgctl.pipelines.catalog import JOBS
from kgctl.pipelines.schemas import TABLES
from kgctl.pipelines.settings import Progress, RunSettings, from_json, progress_from_json
from tests.harness.commandline import Kgctl

PIPELINE = Kgctl()


def test_the_jobs_are_listed_in_the_order_in_which_they_build_on_each_other() -> None:
    rows = PIPELINE.rows("pipeline", "list")
    assert [row["job"] for row in rows] == ["decode", "lag", "evaluate", "rebalances"]
    assert {table for row in rows for table in row["writes"]} == set(TABLES)


@pytest.mark.parametrize("job", JOBS)
def test_explain_tells_the_meaning_of_every_column(job: str) -> None:
    rows = PIPELINE.rows("pipeline", "explain", job)
    assert [(row["table"], row["column"]) for row in rows] == [
        (table, column) for table in JOBS[job].writes for column in TABLES[table].column_names
    ]
    printed = PIPELINE("pipeline", "explain", job)
    assert " ".join(printed.stdout.split()).startswith(f"{job}: {JOBS[job].summary}. ")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", "decod", "--out", "x"], "there is no job 'decod'. Did you mean decode?"),
        (["run", "decode", "--once", "--follow", "--out", "x"], "Give --once or --follow, not both."),
        (["run", "decode", "--follow", "--report", "--out", "x"], "has no end to report"),
        (["run", "decode", "--source", "kafak", "--out", "x"], "'kafak' is not one of kgctl, kafka."),
        (["run", "decode", "--from", "yesterday", "--out", "x"], "'yesterday' is not a time"),
        (["run", "decode", "--step", "0", "--out", "x"], "0 is not a number of seconds above 0."),
        (["run", "decode", "--conf", "spark.x", "--out", "x"], "'spark.x' is not KEY=VALUE."),
        (["run", "decode", "--option", "failOnDataLoss", "--out", "x"], "'failOnDataLoss' is not KEY=VALUE."),
        (["run", "--out", "x"], "Missing argument 'JOB...'"),
        (["run", "decode"], "Missing option '--out'"),
        (["explain", "lags"], "Did you mean lag?"),
        (["bench", "--records", "many"], "'many' is not a number of records"),
        (["bench", "--engines", "excel"], "'excel' is not one of"),
    ],
)
def test_wrong_use_is_exit_code_2_and_says_what_is_wrong(words: list[str], said: str) -> None:
    result = PIPELINE("pipeline", *words)
    assert result.exit_code == 2
    assert said in " ".join(result.stderr.split())


def test_a_job_without_its_input_is_refused_before_anything_starts(tmp_path: Path) -> None:
    result = Kgctl("127.0.0.1:1")("pipeline", "run", "evaluate", "--out", tmp_path / "out")
    assert result.exit_code == 6
    assert result.stderr == "Error: job evaluate reads commits, which job decode writes: run decode first, or with it\n"
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("verb", ["status", "report"])
def test_a_folder_without_tables_is_not_found(verb: str, tmp_path: Path) -> None:
    result = PIPELINE("pipeline", verb, "--out", tmp_path / "nothing")
    assert result.exit_code == 5
    assert "no table was written there" in result.stderr
    assert not (tmp_path / "nothing").exists()


def test_settings_and_progress_cross_to_the_other_process_unchanged() -> None:
    settings = RunSettings(
        ("decode", "lag"),
        "a:1,b:2",
        "/out",
        since=17,
        until=18,
        conf=(("spark.x", "1=2"),),
        source_options=(("k", "v"),),
    )
    assert from_json(settings.to_json()) == settings
    progress = Progress("progress", job="lag", rows=0, behind=0)
    assert progress_from_json(progress.to_json()) == progress


def test_the_command_line_loads_neither_spark_nor_arrow() -> None:
    script = (
        "import sys, json\n"
        "import kgctl.commands.pipeline, kgctl.pipelines.doctor, kgctl.pipelines.runner, kgctl.pipelines.spark.connector_jars\n"
        "print(json.dumps([name for name in ('pyspark', 'py4j', 'pyarrow', 'pandas', 'numpy', 'matplotlib') "
        "if name in sys.modules]))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []
