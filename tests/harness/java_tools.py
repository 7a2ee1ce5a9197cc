"""Run Kafka's tools in tests: output as text or rows, and Java consumers in the background."""

from __future__ import annotations

import json
import re
import subprocess
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Any

import confluent_kafka as ck

from tests.harness.clusters import Cluster
from tests.harness.reference_kafka import KafkaTools

Row = dict[str, str]
PATTERN_MEMBER = Path(__file__).with_name("java") / "PatternMember.java"
SHARE_MEMBER = Path(__file__).with_name("java") / "ShareMember.java"


class Java:
    """Kafka's tools on one cluster. If a tool fails, an assertion shows its output."""

    def __init__(self, tools: KafkaTools, cluster: Cluster) -> None:
        self.tools, self.bootstrap = tools, cluster.bootstrap_servers

    def run(self, name: str, *arguments: object, text: str | None = None) -> str:
        done = self.tools.run(name, "--bootstrap-server", self.bootstrap, *arguments, text=text)
        assert done.returncode == 0, f"{name} {arguments}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        # ConsumerGroupCommand reports its failures on stdout and exits 0.
        assert not re.search(r"^Error: Executing|Exception", done.stdout, re.MULTILINE), done.stdout
        return done.stdout

    def formatted(self, name: str, topic: str, partition: int) -> list[dict[str, Any]]:
        """What one of Kafka's formatters prints for a partition of an internal topic."""
        consumer = ck.Consumer({"bootstrap.servers": self.bootstrap, "group.id": "unused"})
        try:
            _, end = consumer.get_watermark_offsets(ck.TopicPartition(topic, partition), timeout=10)
        finally:
            consumer.close()
        printed = self.run(
            "console-consumer",
            *("--topic", topic, "--partition", partition, "--from-beginning", "--max-messages", end),
            *("--formatter", f"org.apache.kafka.tools.consumer.{name}MessageFormatter"),
        )
        # Objects follow each other without a separator.
        decoder, at, found = json.JSONDecoder(), 0, []
        while printed[at:].strip():
            line, at = decoder.raw_decode(printed, at)
            found.append(line)
            at += len(printed[at:]) - len(printed[at:].lstrip())
        return found

    def table(self, name: str, *arguments: object) -> list[Row]:
        return rows(self.run(name, *arguments))


def rows(text: str) -> list[Row]:
    """Parse a table of Kafka's tools, whose header may be repeated."""
    found: list[Row] = []
    header: list[str] = []
    for line in text.splitlines():
        cells = re.split(r"\s+", _joined(line).strip())
        if cells[0] in {"GROUP", "TOPIC"}:
            header = cells
        elif header and len(cells) == len(header):
            found.append(dict(zip(header, cells, strict=True)))
    return found


def _joined(line: str) -> str:
    """Remove the blanks inside cells: `COORDINATOR (ID)` and `127.0.0.1:9092  (1)`."""
    return re.sub(r"(\S) +\((ID|\d+)\)", r"\1(\2)", line)


class JavaMember:
    """A VerifiableConsumer that is a member of a group until the end of the block."""

    def __init__(self, java: Java, group: str, topic: str, *arguments: object) -> None:
        given = (
            "--bootstrap-server",
            java.bootstrap,
            "--topic",
            topic,
            "--group-id",
            group,
            "--reset-policy",
            "earliest",
        )
        self._listen_to(java.tools.start("verifiable-consumer", *given, *arguments))

    def _listen_to(self, child: subprocess.Popen[str]) -> None:
        self._child = child
        self.events: list[dict[str, Any]] = []
        self._changed = threading.Condition()
        self._listener = threading.Thread(target=self._listen, daemon=True)

    def __enter__(self) -> JavaMember:
        self._listener.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._child.terminate()  # it sends LeaveGroup
        self._child.wait(20)
        self._listener.join(5)
        for pipe in (self._child.stdout, self._child.stderr):
            if pipe is not None:
                pipe.close()

    def kill(self) -> None:
        """Kill it with SIGKILL, without LeaveGroup."""
        self._child.kill()
        self._child.wait()

    def owned(self, topic: str) -> set[int]:
        """The partitions that it reports as assigned."""
        found = set[int]()
        for event in list(self.events):
            if event["name"] in {"partitions_assigned", "partitions_revoked"}:
                named = {place["partition"] for place in event["partitions"] if place["topic"] == topic}
                found = found | named if event["name"] == "partitions_assigned" else found - named
        return found

    def wait_for(self, name: str, within_s: float = 30, **wanted: object) -> dict[str, Any]:
        """The first event of this name with these fields."""
        deadline = time.monotonic() + within_s
        with self._changed:
            while True:
                for event in self.events:
                    if event.get("name") == name and wanted.items() <= event.items():
                        return event
                left = deadline - time.monotonic()
                assert left > 0, f"no {name} {wanted} within {within_s} s: {self.events}"
                self._changed.wait(left)

    def _listen(self) -> None:
        assert self._child.stdout is not None
        for line in self._child.stdout:
            if line.startswith("{"):
                with self._changed:
                    self.events.append(json.loads(line))
                    self._changed.notify_all()


class PatternMember(JavaMember):
    """A Java consumer with group.protocol=consumer that subscribes by a regular expression."""

    def __init__(self, java: Java, group: str, pattern: str) -> None:
        # Java compiles a source file that it is given in place of a class.
        command = java.tools.jars.command(str(PATTERN_MEMBER), java.bootstrap, group, pattern)
        pipe = subprocess.PIPE
        self._listen_to(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True))


class ShareMember(JavaMember):
    """A Java share consumer, which does with each record what its value says (see ShareMember.java)."""

    def __init__(self, java: Java, group: str, topic: str) -> None:
        # Java compiles a source file that it is given in place of a class.
        command = java.tools.jars.command(str(SHARE_MEMBER), java.bootstrap, group, topic)
        pipe = subprocess.PIPE
        self._listen_to(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True))

    def records(self) -> list[tuple[str, int]]:
        """Value and delivery count of what it got, in order."""
        return [(event["value"], event["count"]) for event in list(self.events) if event["name"] == "record"]
