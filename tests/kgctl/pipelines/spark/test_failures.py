"""Spark's error texts become one sentence."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kgctl.client.net.errors import KgctlError, Unreachable
from kgctl.exit_codes import exit_code_of
from kgctl.model.topic_partition import TopicPartition
from kgctl.pipelines.settings import RunSettings
from kgctl.pipelines.source.losses import DataLoss, deleted
from kgctl.pipelines.spark.disk_space import advice
from kgctl.pipelines.spark.failures import LONGEST, DiskFull, JobFailed, WrongSetting, reason_of, sentence_of

WORKER = """An error occurred while calling o57.load.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 1.0 failed 1 times, most recent failure:
Traceback (most recent call last):
  File "/x/kgctl/pipelines/source/reading.py", line 7, in read
    raise DataLoss("orders-0: offset 5 is gone")
kgctl.pipelines.source.losses.DataLoss: orders-0: offset 5 is gone; the log begins at 9

	at org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException(PythonRunner.scala:645)
Caused by: org.apache.spark.api.python.PythonException: Traceback (most recent call last):
"""


def test_a_kgctl_error_anywhere_in_the_chain_is_the_reason() -> None:
    own = Unreachable("127.0.0.1:1: nothing listens there")
    outer = RuntimeError("[STREAM_FAILED] Query terminated")
    outer.__cause__ = own
    assert reason_of(outer) is own
    failed = JobFailed("lag", own)
    assert exit_code_of(failed) == 7
    assert str(failed) == "job lag failed: 127.0.0.1:1: nothing listens there"


def test_a_kgctl_error_of_a_python_worker_keeps_its_name_and_exit_code() -> None:
    found = reason_of(RuntimeError(WORKER))
    assert str(found) == "orders-0: offset 5 is gone; the log begins at 9"
    assert (found.name, exit_code_of(found)) == (DataLoss.name, 6)
    refused = reason_of(RuntimeError("x\nkgctl.client.net.errors.Refused: 127.0.0.1:1: nothing listens there\n\tat y"))
    assert (refused.name, exit_code_of(refused)) == ("UNREACHABLE", 7)


def test_an_unknown_kgctl_error_is_only_text() -> None:
    found = reason_of(RuntimeError("kgctl.nowhere.Thing: it broke"))
    assert (str(found), exit_code_of(found)) == ("it broke", 1)


def test_another_error_of_a_worker_is_shown_without_its_type() -> None:
    assert sentence_of("Traceback\n  x\nValueError: that is not a number\n\tat z") == "that is not a number"


def test_an_error_of_spark_loses_its_tag_and_its_stack() -> None:
    text = "\n[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column cannot be resolved.\n\tat org.apache.spark.sql.X(Y.scala:1)"
    assert sentence_of(text) == "A column cannot be resolved."


def test_the_innermost_java_error_is_shown() -> None:
    text = (
        "Exception thrown in awaitResult:\n\tat a.B\nCaused by: java.lang.X: y\n\tat c.D\nCaused by: e.F: disk full\n"
    )
    assert sentence_of(text) == "disk full"


def test_a_setting_that_spark_refuses_is_named() -> None:
    text = (
        "java.lang.IllegalArgumentException: Error while instantiating 'SessionStateBuilder':\n\tat a.B\n"
        "Caused by: org.apache.spark.SparkIllegalArgumentException: [INVALID_CONF_VALUE.TYPE_MISMATCH] The value 'x' in the "
        "config \"spark.sql.shuffle.partitions\" is invalid. It should be a/an 'int' value. SQLSTATE: 22022\n\tat c.D\n"
    )
    found = reason_of(RuntimeError(text))
    assert isinstance(found, WrongSetting)
    assert str(found) == (
        "The value 'x' in the config \"spark.sql.shuffle.partitions\" is invalid. It should be a/an 'int' value."
    )


def test_an_error_of_java_that_py4j_reports_loses_the_call() -> None:
    text = "An error occurred while calling None.org.apache.X.\n: java.lang.IllegalArgumentException: it is above 1\n\tat a.B\n"
    assert sentence_of(text) == "it is above 1"


def test_a_reason_is_one_line_of_bounded_length_and_never_empty() -> None:
    assert len(sentence_of("x" * 5000)) == LONGEST
    assert sentence_of("") == "Spark gave no reason"
    assert isinstance(reason_of(ValueError("")), KgctlError)


@pytest.mark.parametrize(
    "error",
    [
        OSError(28, "No space left on device", "/facts/commits/_manifest/decode-000001.new"),
        RuntimeError("Task failed\nCaused by: java.io.IOException: No space left on device\n\tat x"),
        OSError(27, "File too large"),
    ],
    ids=["python", "java", "limit"],
)
def test_a_full_disk_has_a_name_of_its_own(error: Exception) -> None:
    assert isinstance(reason_of(error), DiskFull)


def test_the_advice_for_a_full_disk_names_folders(tmp_path: Path) -> None:
    settings = RunSettings(("decode",), "a:1", str(tmp_path / "new" / "out"))
    text = advice(settings)
    assert f"{tmp_path / 'new' / 'out'} has " in text
    assert "MB free" in text
    assert "_checkpoints has " in text
    # An archive has no checkpoint.
    assert "_checkpoints" not in advice(replace(settings, archived=("orders",)))


def test_a_job_that_lost_records_gives_advice_that_a_run_can_follow() -> None:
    loss = deleted(TopicPartition("__consumer_offsets", 3), 5, 9)
    failure = JobFailed("decode", loss)
    assert "failOnDataLoss" in str(loss)
    assert "failOnDataLoss" not in str(failure)
    assert "give another --out" in str(failure)
    assert exit_code_of(failure) == 6


def test_an_error_of_spark_that_outlives_its_jvm_keeps_its_reason() -> None:
    class Captured(Exception):
        _desc = WORKER

        def __str__(self) -> str:
            raise AssertionError

    assert str(reason_of(Captured())) == str(reason_of(RuntimeError(WORKER)))
