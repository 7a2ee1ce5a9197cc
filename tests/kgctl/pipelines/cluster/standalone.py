"""A standalone Spark cluster from the pip package: a master and two workers, which end with the process that started them."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kgctl.pipelines.spark.installation import pyspark_dir
from kgctl.pipelines.spark.java import find_java, java_home_for_spark
from tests.kgctl.pipelines.cluster.families import below, command_of, kill, way_up
from tests.kgctl.pipelines.cluster.waiting import await_that

MASTER = "org.apache.spark.deploy.master.Master"
WORKER = "org.apache.spark.deploy.worker.Worker"
EXECUTOR = "org.apache.spark.executor.CoarseGrainedExecutorBackend"
WORKERS = 2

QUICK_FLAGS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


@dataclass(frozen=True, slots=True)
class Cluster:
    """`url` is the value for --master; `folder` holds the logs, `scratch` the programs' temporary files."""

    url: str
    folder: Path
    tethers: tuple[int, ...]

    @property
    def scratch(self) -> Path:
        return self.folder / "tmp"

    def executors(self) -> list[int]:
        """The JVMs that run tasks."""
        return [pid for tether in self.tethers for pid in below(tether) if EXECUTOR in command_of(pid)]

    def executor_of(self, task_pid: int) -> int:
        """The JVM that started this Python worker."""
        commands = {pid: command_of(pid) for pid in way_up(task_pid)}
        (found,) = [pid for pid, command in commands.items() if EXECUTOR in command] or [0]
        assert found, commands
        return found

    def kill_executor(self, pid: int) -> None:
        assert set(way_up(pid)) & set(self.tethers), f"process {pid} does not belong to this cluster"
        kill(pid)

    def logs(self) -> str:
        """The ends of all logs."""
        paths = [*self.folder.glob("*.log"), *self.folder.glob("work-*/*/*/stderr")]
        return "\n".join(f"{log}:\n{log.read_text(errors='replace')[-3000:]}" for log in sorted(paths))


@contextlib.contextmanager
def standalone(folder: Path) -> Iterator[Cluster]:
    """Each worker has one core and 1 GB."""
    (folder / "tmp").mkdir(parents=True)
    environ = spark_environ(folder)
    with contextlib.ExitStack() as stack:
        where = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
        master = stack.enter_context(_spark_class(folder, "master", [MASTER, *where], environ))
        url = _await_line(folder / "master.log", r"Starting Spark master at (spark://\S+)", master)
        tethers = []
        for number in range(WORKERS):
            size = ["--cores", "1", "--memory", "1g", "--work-dir", str(folder / f"work-{number}")]
            worker = stack.enter_context(
                _spark_class(folder, f"worker-{number}", [WORKER, *where, *size, url], environ)
            )
            tethers.append(worker)
        for number, worker in enumerate(tethers):
            _await_line(folder / f"worker-{number}.log", r"(Successfully registered with master)", worker)
        yield Cluster(url, folder, tuple(worker.pid for worker in tethers))


@contextlib.contextmanager
def _spark_class(
    folder: Path, name: str, arguments: list[str], environ: dict[str, str]
) -> Iterator[subprocess.Popen[bytes]]:
    tether = [sys.executable, "-m", "tests.kgctl.pipelines.cluster.tether"]
    with (folder / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(
            [*tether, str(pyspark_dir() / "bin" / "spark-class"), *arguments],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            env=environ,
        )
    assert process.stdin is not None
    try:
        yield process
    finally:
        process.stdin.close()
        process.wait(30)


def spark_environ(folder: Path) -> dict[str, str]:
    """For Spark's scripts; temporary files go to `folder`/tmp."""
    return {
        **os.environ,
        "JAVA_HOME": str(java_home_for_spark(find_java(), folder)),
        "SPARK_HOME": str(pyspark_dir()),
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": f"{QUICK_FLAGS} -Djava.io.tmpdir={folder / 'tmp'}",
        "SPARK_LOCAL_DIRS": str(folder / "tmp"),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "TZ": "UTC",
    }


def _await_line(log: Path, pattern: str, process: subprocess.Popen[bytes]) -> str:
    def check() -> re.Match[str] | None:
        text = log.read_text(errors="replace")
        assert process.poll() is None, f"it ended with {process.returncode}:\n{text[-3000:]}"
        return re.search(pattern, text)

    return await_that(check, f"{log} has no {pattern}", 120)[1]
