"""One sentence out of what Spark says when a job fails."""

from __future__ import annotations

from kgctl.client.errors import KgctlError, Unreachable
from kgctl.pipelines.failures import LONGEST, JobFailed, reason_of, sentence_of

WORKER = """An error occurred while calling o57.load.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 1.0 failed 1 times, most recent failure:
Traceback (most recent call last):
  File "/x/kgctl/pipelines/source/reading.py", line 7, in read
    raise LostRecords("orders-0: offset 5 is gone")
kgctl.pipelines.source.reading.LostRecordsError: orders-0: offset 5 is gone; the log begins at 9

	at org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException(PythonRunner.scala:645)
Caused by: org.apache.spark.api.python.PythonException: Traceback (most recent call last):
"""


def test_an_error_of_ours_is_the_reason_wherever_it_is_in_the_chain() -> None:
    own = Unreachable("127.0.0.1:1: nothing listens there")
    outer = RuntimeError("[STREAM_FAILED] Query terminated")
    outer.__cause__ = own
    assert reason_of(outer) is own
    failed = JobFailed("lag", own)
    assert failed.exit_code == 7
    assert str(failed) == "job lag failed: 127.0.0.1:1: nothing listens there"


def test_the_error_of_a_python_worker_is_found_in_the_middle_of_sparks_text() -> None:
    assert sentence_of(WORKER) == "orders-0: offset 5 is gone; the log begins at 9"


def test_a_reason_of_spark_itself_loses_its_tag_and_its_stack() -> None:
    text = "\n[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column cannot be resolved.\n\tat org.apache.spark.sql.X(Y.scala:1)"
    assert sentence_of(text) == "A column cannot be resolved."


def test_a_reason_is_one_line_of_bounded_length_and_never_empty() -> None:
    assert len(sentence_of("x" * 5000)) == LONGEST
    assert sentence_of("") == "Spark gave no reason"
    assert isinstance(reason_of(ValueError("")), KgctlError)
