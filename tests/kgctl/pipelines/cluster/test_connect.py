"""A run over Spark Connect: the server has the JVM, kgctl and the folder of the tables."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from broker.local import LocalBroker
from kgctl.pipelines.spark.installation import pyspark_dir
from tests.harness.commandline import Kgctl, fill, member_of
from tests.kgctl.pipelines.cluster.programs import running
from tests.kgctl.pipelines.cluster.standalone import QUICK_FLAGS, spark_environ
from tests.kgctl.pipelines.cluster.waiting import await_that
from tests.kgctl.pipelines.runs import rows

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.timeout(900),
    pytest.mark.skipif(find_spec("grpc_status") is None, reason="pyspark[connect] is not installed"),
]

SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
SERVER_CONF = {
    "spark.connect.grpc.binding.address": "127.0.0.1",
    "spark.connect.grpc.binding.port": "0",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
}
JOBS = ("decode", "lag", "evaluate", "rebalances")


@pytest.fixture(scope="module")
def remote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server on this machine."""
    folder = tmp_path_factory.mktemp("connect")
    (folder / "tmp").mkdir()
    conf = [word for key, value in SERVER_CONF.items() for word in ("--conf", f"{key}={value}")]
    flags = ["--driver-memory", "1g", "--driver-java-options", f"{QUICK_FLAGS} -Djava.io.tmpdir={folder / 'tmp'}"]
    submit = [str(pyspark_dir() / "bin" / "spark-submit"), "--master", "local[2]", *flags, *conf]
    command = [sys.executable, "-m", "tests.kgctl.pipelines.cluster.tether", *submit, "--class", SERVER]
    log = folder / "server.log"
    # For this class, spark-submit prefers the variable to --driver-memory.
    environ = {**spark_environ(folder), "SPARK_DAEMON_MEMORY": "1g", "PYSPARK_PYTHON": sys.executable}
    with log.open("wb") as noise:
        server = subprocess.Popen(
            [*command, "spark-internal"], stdin=subprocess.PIPE, stdout=noise, stderr=noise, env=environ
        )
    assert server.stdin is not None
    try:
        port = await_that(lambda: port_in(log, server), f"{log} names no port")
        yield f"sc://127.0.0.1:{port[1]}"
    finally:
        server.stdin.close()
        server.wait(30)


def port_in(log: Path, server: subprocess.Popen[bytes]) -> re.Match[str] | None:
    text = log.read_text(errors="replace")
    assert server.poll() is None, f"the server ended: {text[-3000:]}"
    return re.search(r"Spark Connect server started at: \S*?:(\d+)", text)


def test_a_thin_client_runs_all_jobs(remote: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with LocalBroker({"group.initial.rebalance.delay.ms": 0}) as broker:
        kgctl = Kgctl(broker.bootstrap_servers)
        assert kgctl("topics", "create", "orders").exit_code == 0
        fill(kgctl, "orders", [100])
        with member_of(kgctl, "readers", {"orders": [0]}):
            pass
        kgctl.commit("readers", "orders", p0=40)
        command = ["kgctl", "pipeline", "run", *JOBS, "--remote", remote, "--out", str(out), "--json"]
        with running([*command, "--bootstrap", broker.bootstrap_servers], tmp_path / "stderr", tmp_path) as program:
            assert program.await_end() == 0, program.stderr_tail()
    mine = [row for row in rows(out, "commits") if row["group"] == "readers"]
    assert [(row["topic"], row["part"], row["committed"]) for row in mine] == [("orders", 0, 40)]
    assert {row["lag"] for row in rows(out, "f_lag")} == {60}
    assert len(rows(out, "health")) == 1
    assert len(rows(out, "f_rebalance")) == 2
