"""Starts Spark's JVM through Spark's own launcher, `spark-submit`, and ends it."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kgctl.client.net.errors import KgctlError
from kgctl.pipelines.spark.java import Java, java_home_for_spark

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway

_TAIL_LINES = 40
# A line of a stack trace, and how Java ends after any error.
_NO_REASON = re.compile(r"\s+at |Error: (Could not create the Java|A fatal exception has occurred)")
_THROWN = re.compile(r'^Exception in thread "[^"]*" (?:[\w.$]+: )?')


class SparkDidNotStart(KgctlError):
    name = "SPARK_DID_NOT_START"
    says_all = True


@dataclass(frozen=True, slots=True)
class Launch:
    """What a JVM is started with. `scratch` is a folder for this JVM alone; `environ` is its whole environment.

    The log has `log_begin` bytes of earlier runs.
    """

    java: Java
    conf: Mapping[str, str]
    environ: Mapping[str, str]
    scratch: Path
    log: Path
    log_begin: int = 0


@contextlib.contextmanager
def launched(launch: Launch, end_timeout_s: float) -> Iterator[JavaGateway]:
    """A gateway to a new JVM, which ends with the block. Raises SparkDidNotStart."""
    from pyspark.conf import SparkConf
    from pyspark.errors import PySparkRuntimeError
    from pyspark.java_gateway import launch_gateway

    conf = SparkConf(loadDefaults=False).setAll(list(launch.conf.items()))
    java_home = java_home_for_spark(launch.java, launch.scratch)
    with open(launch.log, "ab") as log, _environment({**launch.environ, "JAVA_HOME": str(java_home)}):
        try:
            gateway = launch_gateway(conf, {"stdout": log, "stderr": log})
        except PySparkRuntimeError as failure:
            raise did_not_start("Spark's JVM did not start", launch) from failure
    try:
        yield gateway
    finally:
        end_jvm(gateway.proc, end_timeout_s)


def end_jvm(process: subprocess.Popen[bytes], timeout_s: float) -> None:
    """Close the JVM's standard input, which asks it to end; kill it after the timeout."""
    if process.stdin is not None:
        process.stdin.close()
    try:
        process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def did_not_start(sentence: str, launch: Launch) -> SparkDidNotStart:
    """The error, with the reason that Java has written to the log."""
    with contextlib.suppress(OSError), launch.log.open("rb") as file:
        file.seek(launch.log_begin)
        lines = file.read().decode("utf-8", "replace").splitlines()[-_TAIL_LINES:]
        for line in reversed(lines):
            if line.strip() and not _NO_REASON.match(line):
                return SparkDidNotStart(f"{sentence}: {_THROWN.sub('', line)}")
    return SparkDidNotStart(f"{sentence}; see {launch.log}")


@contextlib.contextmanager
def _environment(environ: Mapping[str, str]) -> Iterator[None]:
    """pyspark passes this interpreter's environment on to the JVM, so it is replaced for the duration of the launch."""
    before = dict(os.environ)
    os.environ.clear()
    os.environ.update(environ)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
