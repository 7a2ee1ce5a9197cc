"""A real Apache Kafka for comparisons: one KRaft node from its Maven artifacts, and Kafka's own Java tools.

    python -m tests.harness.reference_kafka start [--port N] [-o key=value ...]   foreground; prints "READY host:port pid"
    python -m tests.harness.reference_kafka tool NAME ARGUMENT...                 NAME: topics, consumer-groups, ...

Needs java 17 or newer and mvn. Maven Central supplies the jars (54 MB) once; they stay in
$XDG_CACHE_HOME/kgctl-reference, together with an archive of loaded classes for each tool and the broker, which halves the start time.
The data directory is temporary. The configuration is Kafka's default, except for one replica of each partition and the
loopback interface.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import fcntl
import itertools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType

from broker.protocol.errors import ErrorCode
from broker.protocol.messages.find_coordinator import FindCoordinatorRequest
from broker.protocol.messages.heartbeat import HeartbeatRequest
from broker.protocol.offsets_topic import PARTITIONS, partition_for
from tests.harness.ports import free_port
from tests.harness.wire_client import ConnectionClosed, WireClient

VERSION = "4.1.0"
READY_WITHIN_S = 60.0

TOOLS = {
    "topics": "org.apache.kafka.tools.TopicCommand",
    "configs": "kafka.admin.ConfigCommand",
    "client-metrics": "org.apache.kafka.tools.ClientMetricsCommand",
    "groups": "org.apache.kafka.tools.GroupsCommand",
    "consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "share-groups": "org.apache.kafka.tools.consumer.group.ShareGroupCommand",
    "get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "features": "org.apache.kafka.tools.FeatureCommand",
    "transactions": "org.apache.kafka.tools.TransactionsCommand",
    "broker-api-versions": "org.apache.kafka.tools.BrokerApiVersionsCommand",
    "acls": "org.apache.kafka.tools.AclCommand",
    "console-producer": "org.apache.kafka.tools.ConsoleProducer",
    "console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "console-share-consumer": "org.apache.kafka.tools.consumer.ConsoleShareConsumer",
    "verifiable-producer": "org.apache.kafka.tools.VerifiableProducer",
    "verifiable-consumer": "org.apache.kafka.tools.VerifiableConsumer",
    "producer-perf-test": "org.apache.kafka.tools.ProducerPerformance",
    "consumer-perf-test": "org.apache.kafka.tools.ConsumerPerformance",
    "storage": "kafka.tools.StorageTool",
    "transactional-message-copier": "org.apache.kafka.tools.TransactionalMessageCopier",
}
# A tool runs for a second or two: the C1 compiler and the serial collector start fastest.
QUICK_START = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-Xlog:disable"]
QUIET = "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"
# The archive of a tool that has none because it never ran to its end: close enough.
OTHER_ARCHIVE = "console-consumer"
BROKER = "broker"
POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>reference</groupId><artifactId>kafka-jars</artifactId><version>1</version>
  <dependencies>
    {artifacts}
    <dependency><groupId>org.slf4j</groupId><artifactId>slf4j-simple</artifactId><version>1.7.36</version></dependency>
  </dependencies>
</project>
"""
ARTIFACT = "<dependency><groupId>org.apache.kafka</groupId><artifactId>{name}</artifactId><version>{version}</version></dependency>"


class Unavailable(Exception):
    """A real Kafka cannot run on this machine; the text says why."""


class Jars:
    """The jars of one Kafka release, fetched at first use: the broker with its tools, or other artifacts."""

    artifacts: Sequence[str] = ("kafka_2.13", "kafka-tools")
    stem = "kafka"

    def __init__(self, version: str = VERSION) -> None:
        for program in ("java", "mvn"):
            if shutil.which(program) is None:
                raise Unavailable(f"no {program} on PATH")
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        self.home = cache / "kgctl-reference" / f"{self.stem}-{version}"
        self.home.mkdir(parents=True, exist_ok=True)
        with (self.home / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (self.home / "complete").exists():
                self._fetch(version)

    def _fetch(self, version: str) -> None:
        pom, jars = self.home / "pom.xml", self.home / "libs"
        artifacts = "\n    ".join(ARTIFACT.format(name=name, version=version) for name in self.artifacts)
        pom.write_text(POM.format(artifacts=artifacts))
        goal = ["dependency:copy-dependencies", f"-DoutputDirectory={jars}", "-DincludeScope=runtime"]
        fetched = subprocess.run(["mvn", "-q", "-B", "-f", pom, *goal], capture_output=True, text=True, check=False)
        if fetched.returncode != 0:
            raise Unavailable(f"mvn could not fetch Kafka {version}: {fetched.stdout.strip()[-300:]}")
        for second_binding in (*jars.glob("log4j-slf4j*"), *jars.glob("slf4j-reload4j*")):
            second_binding.unlink()  # slf4j accepts one binding; keep slf4j-simple
        (self.home / "complete").touch()

    def command(
        self, main: str, *arguments: object, heap: str = "256m", flags: Sequence[str] = QUICK_START
    ) -> list[str]:
        return ["java", f"-Xmx{heap}", *flags, QUIET, "-cp", f"{self.home / 'libs'}/*", main, *map(str, arguments)]

    def archive(self, name: str) -> Path:
        """The archive of the classes that a tool loads (class data sharing). Java ignores one that does not match."""
        return self.home / f"{name}.jsa"


class StreamsJars(Jars):
    artifacts = ("kafka-streams",)
    stem = "kafka-streams"


class KafkaTools:
    """Kafka's command-line tools, for any cluster."""

    def __init__(self, version: str = VERSION) -> None:
        self.jars = Jars(version)

    def run(
        self, name: str, *arguments: object, text: str | None = None, timeout_s: float = 60
    ) -> subprocess.CompletedProcess[str]:
        """Run a tool to its end, with `text` as its standard input. The first run of a tool also makes its archive."""
        archive = self.jars.archive(name)
        made = archive.with_suffix(f".{os.getpid()}") if not archive.exists() else None
        flag = f"-XX:ArchiveClassesAtExit={made}" if made else f"-XX:SharedArchiveFile={archive}"
        command = self.jars.command(TOOLS[name], *arguments, flags=[*QUICK_START, flag])
        done = subprocess.run(command, input=text or "", capture_output=True, text=True, timeout=timeout_s, check=False)
        if made and made.exists():
            made.replace(archive)
        return done

    def start(self, name: str, *arguments: object) -> subprocess.Popen[str]:
        """Start a tool that runs until it is stopped. Its output is a pipe."""
        archive = next(filter(Path.exists, map(self.jars.archive, (name, OTHER_ARCHIVE))), None)
        flags = [*QUICK_START, *([f"-XX:SharedArchiveFile={archive}"] if archive else [])]
        command = self.jars.command(TOOLS[name], *arguments, flags=flags)
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )


class ReferenceKafka:
    """One real Kafka broker for the duration of a `with` block.

    A subclass with other listeners overrides `listeners`, `format_arguments` and `readiness_client`.
    """

    def __init__(
        self,
        config: Mapping[str, str] | None = None,
        *,
        version: str = VERSION,
        port: int = 0,
        heap: str = "768m",
        quick: bool = True,
    ) -> None:
        """`quick` halves the time of the start; code that runs for long is slower."""
        self.tools = KafkaTools(version)
        self._config, self._heap, self._quick = dict(config or {}), heap, quick
        self._port, self._controller_port = port or free_port(), free_port()
        self.bootstrap_servers = f"127.0.0.1:{self._port}"
        self.data_dir = Path(tempfile.mkdtemp(prefix="reference-kafka-"))
        self._child: subprocess.Popen[bytes] | None = None
        self._made: Path | None = None  # an archive that the process writes when it exits

    @property
    def pid(self) -> int:
        assert self._child is not None, "not started"
        return self._child.pid

    def __enter__(self) -> ReferenceKafka:
        try:
            self._format()
            self._spawn()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    def tool(self, name: str, *arguments: object, text: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run one of Kafka's tools on this broker."""
        return self.tools.run(name, "--bootstrap-server", self.bootstrap_servers, *arguments, text=text)

    def kill(self) -> None:
        """Kill the broker with SIGKILL, as in a crash."""
        if self._child is not None:
            self._child.kill()
            self._child.wait()

    def restart(self) -> None:
        """Start again on the same port and data directory."""
        self.kill()
        self._spawn()

    def stop(self) -> None:
        if self._made is not None and self._child is not None:
            self._child.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._child.wait(READY_WITHIN_S)
        # The data is removed anyway, and a clean stop takes Kafka seconds.
        self.kill()
        if self._made is not None and self._made.exists():
            self._made.replace(self.tools.jars.archive(BROKER))
        shutil.rmtree(self.data_dir, ignore_errors=True)

    def wait(self) -> int:
        assert self._child is not None, "not started"
        return self._child.wait()

    def listeners(self) -> dict[str, str]:
        """The address of each listener for clients."""
        return {"PLAINTEXT": self.bootstrap_servers}

    def format_arguments(self) -> list[str]:
        """Further arguments of `kafka-storage format`."""
        return []

    def readiness_client(self) -> WireClient:
        """A connection that may ask about any group."""
        return WireClient(("127.0.0.1", self._port), timeout_s=5)

    def _format(self) -> None:
        listeners = ",".join(f"{name}://{address}" for name, address in self.listeners().items())
        config = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.bootstrap.servers": f"127.0.0.1:{self._controller_port}",
            "controller.listener.names": "CONTROLLER",
            "listeners": f"{listeners},CONTROLLER://127.0.0.1:{self._controller_port}",
            "advertised.listeners": listeners,
            "log.dirs": str(self.data_dir / "log"),
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            **self._config,
        }
        properties = self.data_dir / "server.properties"
        properties.write_text("".join(f"{name}={value}\n" for name, value in config.items()))
        identity = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        arguments = ["--standalone", f"--cluster-id={identity}", "-c", properties, *self.format_arguments()]
        formatted = self.tools.run("storage", "format", *arguments)
        if formatted.returncode != 0:
            raise RuntimeError(f"Kafka could not format its storage: {(formatted.stderr or formatted.stdout).strip()}")

    def _spawn(self) -> None:
        properties = self.data_dir / "server.properties"
        command = self.tools.jars.command("kafka.Kafka", properties, heap=self._heap, flags=self._flags())
        with (self.data_dir / "server.out").open("ab") as out:
            self._child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        self._wait_until_loaded(self._child)

    def _flags(self) -> list[str]:
        if not self._quick:
            return []
        archive = self.tools.jars.archive(BROKER)
        self._made = None
        if archive.exists():
            return [*QUICK_START, f"-XX:SharedArchiveFile={archive}"]
        self._made = archive.with_suffix(f".{os.getpid()}")
        return [*QUICK_START, f"-XX:ArchiveClassesAtExit={self._made}"]

    def _wait_until_loaded(self, child: subprocess.Popen[bytes]) -> None:
        """Wait until every partition of __consumer_offsets exists and is loaded; answers vary before that."""
        deadline = time.monotonic() + READY_WITHIN_S
        pending = _one_group_per_partition()
        while pending:
            if child.poll() is not None:
                raise RuntimeError(f"Kafka ended with status {child.returncode}: {self._last_output()}")
            if time.monotonic() > deadline:
                raise TimeoutError(f"Kafka was not ready within {READY_WITHIN_S:.0f} s: {self._last_output()}")
            with contextlib.suppress(OSError, ConnectionClosed), self.readiness_client() as client:
                while pending and _is_loaded(client, pending[-1]):
                    pending.pop()
            if pending:
                time.sleep(0.05)

    def _last_output(self) -> str:
        return (self.data_dir / "server.out").read_text(errors="replace")[-2000:]


def _one_group_per_partition() -> list[str]:
    by_partition: dict[int, str] = {}
    for number in itertools.count():
        by_partition.setdefault(partition_for(f"warm-{number}"), f"warm-{number}")
        if len(by_partition) == PARTITIONS:
            return list(by_partition.values())
    raise AssertionError("unreachable")


def _is_loaded(client: WireClient, group: str) -> bool:
    """Whether the coordinator of a group answers. FindCoordinator creates the topic if it does not exist."""
    if client.ask(FindCoordinatorRequest(key=group), 0).error_code != ErrorCode.NONE:
        return False
    answer = client.ask(HeartbeatRequest(group_id=group, generation_id=0, member_id="nobody"), 0)
    return bool(answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID)


def _serve(options: argparse.Namespace) -> int:
    config = dict(option.split("=", 1) for option in options.option)
    with ReferenceKafka(config, version=options.version, port=options.port, heap=options.heap, quick=False) as kafka:
        stopping = False

        def stop(*_: object) -> None:
            nonlocal stopping
            stopping = True
            # Not with Popen, whose lock the wait below holds.
            os.kill(kafka.pid, signal.SIGKILL)

        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, stop)
        print(f"READY {kafka.bootstrap_servers} {kafka.pid}", flush=True)
        status = kafka.wait()
        return 0 if stopping else status or 1


def _run_tool(options: argparse.Namespace) -> int:
    command = Jars(options.version).command(TOOLS.get(options.name, options.name), *options.arguments)
    os.execvp(command[0], command)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)

    def command(name: str, function: Callable[[argparse.Namespace], int]) -> argparse.ArgumentParser:
        made = commands.add_parser(name)
        made.set_defaults(function=function)
        made.add_argument("--version", default=VERSION)
        return made

    start = command("start", _serve)
    start.add_argument("--port", type=int, default=0)
    start.add_argument("--heap", default="1g")
    start.add_argument("-o", "--option", action="append", default=[], metavar="key=value")
    tool = command("tool", _run_tool)
    tool.add_argument("name", help=", ".join(TOOLS) + ", or a Java class")
    tool.add_argument("arguments", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    try:
        return int(options.function(options))
    except Unavailable as reason:
        print(f"reference Kafka: not available here: {reason}", file=sys.stderr)
        return 69


if __name__ == "__main__":
    sys.exit(main())
