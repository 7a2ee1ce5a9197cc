"""`kgctl pipeline` up to the start of Spark."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from kgctl.pipelines import progress, settings
from kgctl.pipelines.catalog import JOBS
from kgctl.pipelines.progress import Progress
from kgctl.pipelines.schemas import TABLES
from kgctl.pipelines.settings import RunSettings
from tests.harness import ROOT
from tests.harness.commandline import Kgctl

PIPELINE = Kgctl()


def test_jobs_are_listed_in_an_order_in_which_they_can_run() -> None:
    rows = PIPELINE.rows("pipeline", "list")
    assert [row["job"] for row in rows] == list(JOBS)
    assert {table for row in rows for table in row["writes"]} == set(TABLES)


def test_every_job_reads_tables_that_earlier_jobs_write_and_has_a_function() -> None:
    written: set[str] = set()
    for job in JOBS.values():
        assert {table.name for table in job.tables} <= written
        written |= {table.name for table in job.writes}
        module, _, name = job.function.partition(":")
        path = ROOT.joinpath(*module.split(".")).with_suffix(".py")
        assert f"\ndef {name}(run: RunContext, job: Job)" in path.read_text()


def test_the_docs_list_every_job_with_its_inputs_and_tables() -> None:
    lines = (ROOT / "docs" / "pipelines.md").read_text().splitlines()
    for job in JOBS.values():
        (line,) = [line for line in lines if line.startswith(f"| `{job.name}` |")]
        for name in (*job.topics, *(table.name for table in (*job.tables, *job.writes))):
            assert f"`{name}`" in line


@pytest.mark.parametrize("job", JOBS)
def test_explain_gives_the_meaning_of_every_column(job: str) -> None:
    rows = PIPELINE.rows("pipeline", "explain", job)
    assert [(row["table"], row["column"]) for row in rows] == [
        (table.name, column) for table in JOBS[job].writes for column in table.column_names
    ]
    printed = PIPELINE("pipeline", "explain", job)
    assert " ".join(printed.stdout.split()).startswith(f"{job}: {JOBS[job].summary}. ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "decod", "--out", "x"], "there is no job 'decod'. Did you mean decode?"),
        (["run", "decode", "--once", "--follow", "--out", "x"], "Give --once or --follow, not both."),
        (["run", "decode", "--follow", "--report", "--out", "x"], "does not end"),
        (["run", "decode", "--source", "kafak", "--out", "x"], "'kafak' is not one of kgctl, kafka."),
        (["run", "decode", "--from", "yesterday", "--out", "x"], "'yesterday' is not a time"),
        (["run", "decode", "--step", "0", "--out", "x"], "0 is not a number of seconds above 0."),
        (["run", "decode", "--conf", "spark.x", "--out", "x"], "'spark.x' is not KEY=VALUE."),
        (["run", "decode", "--option", "kafka.sasl.password=x", "--out", "x"], "other users can read command lines"),
        (["run", "decode", "--option", "failOnDataLoss", "--out", "x"], "'failOnDataLoss' is not KEY=VALUE."),
        (["run", "decode", "--option", "foo=bar", "--out", "x"], 'format("kgctl") has no option'),
        (["run", "decode", "--master", "spork", "--out", "x"], "'spork' is not local, local[N]"),
        *[
            (
                ["run", "decode", option, "5m" if option == "--max-outage" else "5", "--out", "x"],
                "Give it with --follow.",
            )
            for option in ("--trigger", "--max-outage", "--scan-every")
        ],
        (["archive", "t", "--max-outage", "5m", "--out", "x"], "Give it with --follow."),
        (["verify", "x", "--state", "y"], "Give it with --against."),
        (["archive", "t", "--from", "now-1d", "--until", "now-2d", "--out", "x"], "it is not after --from."),
        (["run", "decode", "--out", "s3://bucket/x"], "Addresses such as s3:// are not supported"),
        (["run", "decode", "--checkpoint", "hdfs://h/x", "--out", "x"], "Addresses such as hdfs:// are not supported"),
        (["run", "decode", "--option", "failondataloss=false", "--out", "x"], "A run sets failondataloss itself."),
        (
            ["archive", "t", "--option", "kafka.isolation.level=read_committed", "--out", "x"],
            "A run sets kafka.isolation",
        ),
        (
            ["run", "decode", "--out", "x", "--sink", "kafka:t"],
            "None of these jobs judges groups: add evaluate or anomalies.",
        ),
        (["run", "decode", "--out", "x", "--fail-on", "stalled"], "None of these jobs finds STALLED: add evaluate."),
        (["run", "evaluate", "decode", "--out", "x", "--fail-on", "anomalous"], "finds ANOMALOUS: add anomalies."),
        (["run", "evaluate", "decode", "--out", "x", "--sink", "slack:x"], "a sink is kafka:TOPIC, prometheus:FILE"),
        (["run", "evaluate", "decode", "--out", "x", "--fail-on", "bad"], "'BAD' is not one of STOPPED, STALLED,"),
        (["run", "evaluate", "decode", "--out", "x", "--follow", "--fail-on", "stalled"], "use --sink instead"),
        (
            ["run", "evaluate", "decode", "--out", "x", "--sink", "webhook:https://h/", "--repeat", "0s"],
            "'0s' is not above zero.",
        ),
        (
            ["run", "evaluate", "decode", "--out", "x", "--sink", "prometheus:x.prom", "--repeat", "1h"],
            "Give it with --sink kafka or webhook.",
        ),
        (["run", "evaluate", "decode", "--out", "x", "--webhook-headers", "h"], "Give it with --sink webhook."),
        (
            ["run", "decode", "--out", "x", "--topics", "a.*"],
            "no effect on these jobs, only on retention, compaction and producers.",
        ),
        (
            ["run", "decode", "--out", "x", "--follow", "--scan-every", "5"],
            "It has no effect on these jobs, only on retention and compaction.",
        ),
        (["run", "--out", "x"], "Missing argument 'JOB...'"),
        (["run", "decode"], "Missing option '--out'"),
        (["explain", "lags"], "Did you mean lag?"),
        (["bench", "--records", "many"], "'many' is not a number of records"),
        (["bench", "--engines", "excel"], "'excel' is not one of"),
    ],
)
def test_wrong_usage_exits_with_2_and_says_what_is_wrong(arguments: list[str], message: str) -> None:
    result = PIPELINE("pipeline", *arguments)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())


def test_a_job_without_its_input_is_refused_before_spark_starts(tmp_path: Path) -> None:
    result = Kgctl("127.0.0.1:1")("pipeline", "run", "evaluate", "--out", tmp_path / "out")
    assert result.exit_code == 6
    assert (
        result.stderr == "Error: job evaluate reads the table commits, which does not exist yet: run job decode too\n"
    )
    result = Kgctl("127.0.0.1:1")("pipeline", "run", "anomalies", "--out", tmp_path / "out")
    assert result.stderr == (
        "Error: job anomalies reads the table f_lag, which does not exist yet: run jobs decode, lag, rebalances and "
        "commit_rates too\n"
    )
    assert not (tmp_path / "out").exists()


def test_the_rules_of_health_are_explained_in_the_order_of_the_docs() -> None:
    section = (ROOT / "docs" / "pipelines.md").read_text().partition("\n## Health\n")[2].partition("\n## ")[0]
    rules = [line.split(" | ") for line in section.splitlines() if line.startswith("| `")]
    wanted = [f"{rule.rstrip(' |')}: {status.strip('| `')}." for status, _, rule in rules[1:]]
    explained = JOBS["evaluate"].description
    places = [explained.find(one[0].upper() + one[1:]) for one in wanted]
    assert len(places) == 8
    assert -1 not in places
    assert places == sorted(places)


@pytest.mark.parametrize("verb", ["status", "report"])
def test_a_folder_without_tables_is_not_found(verb: str, tmp_path: Path) -> None:
    result = PIPELINE("pipeline", verb, "--out", tmp_path / "nothing")
    assert result.exit_code == 5
    assert "holds no tables" in result.stderr
    assert not (tmp_path / "nothing").exists()


@pytest.mark.parametrize(("verb", "code"), [(["run", "decode"], 1), (["status"], 5), (["report"], 5)], ids=str)
def test_a_file_in_place_of_the_folder_is_an_error_in_one_sentence(verb: list[str], code: int, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch()
    result = Kgctl("127.0.0.1:1")("pipeline", *verb, "--out", path)
    assert (result.exit_code, len(result.stderr.splitlines())) == (code, 1)
    assert str(path) in result.stderr
    assert "bug" not in result.stderr


def test_settings_and_progress_survive_the_way_to_the_other_process() -> None:
    given = RunSettings(
        ("decode", "lag"),
        "a:1,b:2",
        "/out",
        since=17,
        conf=(("spark.x", "1=2"),),
        source_options=(("k", "v"),),
    )
    assert settings.from_json(given.to_json()) == given
    line = Progress("progress", job="lag", rows=0, behind=0)
    assert progress.from_json(line.to_json()) == line


def test_the_command_line_does_not_load_spark_or_arrow() -> None:
    script = (
        "import sys, json\n"
        "import kgctl.commands.pipelines.app, kgctl.pipelines.doctor, kgctl.pipelines.runner, kgctl.pipelines.spark.connector_jars\n"
        "print(json.dumps([name for name in ('pyspark', 'py4j', 'pyarrow', 'pandas', 'numpy', 'jinja2') "
        "if name in sys.modules]))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []
