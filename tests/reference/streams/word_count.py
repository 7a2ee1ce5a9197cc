"""Runs the word count: instances that are killed, lines that are fed, and counts that must be 1, 2, 3, ... for each word.

python -m tests.reference.streams.word_count [--seconds N] [--seed N] [--cluster kgctl|kafka]
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import itertools
import secrets
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import confluent_kafka as ck
import confluent_kafka.admin as cka

from tests.harness import clusters
from tests.harness.clusters import Cluster
from tests.harness.reference_kafka import StreamsJars

INSTANCES, PARTITIONS = 3, 3
WORDS = [f"word{n}" for n in range(40)]
LINES_PER_S = 40
COUNTED_WITHIN_S = 90.0
WAIT_S = 0.1
QUIET = {"log_level": 2, "reconnect.backoff.max.ms": 200}
BROKER, INSTANCE = "broker", "instance"
DECK = (BROKER, BROKER, INSTANCE, INSTANCE, INSTANCE)
"""What is killed, in an order that the seed chooses."""


class WordCount:
    """The compiled program and its running instances."""

    def __init__(self, directory: Path, bootstrap: str) -> None:
        self._directory, self._bootstrap = directory, bootstrap
        self._jars = StreamsJars()
        source = Path(__file__).with_name("WordCount.java")
        command = ["javac", "-d", directory, "-cp", f"{self._jars.home / 'libs'}/*", source]
        subprocess.run(command, check=True, capture_output=True, text=True)
        self._children: dict[int, subprocess.Popen[bytes]] = {}
        self.starts = 0

    def start(self, instance: int) -> None:
        """Start an instance on its state directory."""
        self.starts += 1
        command = self._jars.command("WordCount", self._bootstrap, self._directory / f"state-{instance}", heap="128m")
        command[command.index("-cp") + 1] += f":{self._directory}"
        with self.log(instance).open("ab") as log:
            self._children[instance] = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=log)

    def kill(self, instance: int) -> None:
        child = self._children.pop(instance)
        child.kill()
        child.wait()
        if child.stdin is not None:
            child.stdin.close()

    def stop(self) -> None:
        for instance in list(self._children):
            self.kill(instance)

    def check(self) -> None:
        for instance, child in self._children.items():
            assert child.poll() is None, f"instance {instance} ended: {self.log(instance).read_text()[-2000:]}"

    def log(self, instance: int) -> Path:
        return self._directory / f"instance-{instance}.log"


class Feed:
    """Lines of words, sent once each, and how often they contain each word."""

    def __init__(self, bootstrap: str, random: Random) -> None:
        self._producer = ck.Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, **QUIET})
        self._random = random
        self.expected: collections.Counter[str] = collections.Counter()

    def line(self) -> None:
        words = self._random.choices(WORDS, k=self._random.randint(1, 6))
        self.expected.update(words)
        self._producer.produce("lines", " ".join(words), partition=self._random.randrange(PARTITIONS))
        self._producer.poll(0)

    def end(self) -> None:
        assert self._producer.flush(60) == 0, "not every line was acknowledged"


class Counts:
    """What a read_committed reader sees of the counts. Each word's counts must be 1, 2, 3, ... without repetition."""

    def __init__(self, bootstrap: str) -> None:
        settings = {"bootstrap.servers": bootstrap, "group.id": "reader", "enable.auto.commit": False, **QUIET}
        self._reader = ck.Consumer({**settings, "isolation.level": "read_committed", "fetch.wait.max.ms": 100})
        self._reader.assign([ck.TopicPartition("counts", p, ck.OFFSET_BEGINNING) for p in range(PARTITIONS)])
        self.counted: collections.Counter[str] = collections.Counter()

    def read(self) -> None:
        for message in self._reader.consume(1000, WAIT_S):
            if message.error() is None:
                word, count, before = message.key().decode(), int(message.value()), self.counted[message.key().decode()]
                where = f"counts-{message.partition()} offset {message.offset()}"
                assert count == before + 1, f"{word} was counted {before} times, then {count} at {where}"
                self.counted[word] = count

    def close(self) -> None:
        self._reader.close()


def run(cluster: Cluster, directory: Path, seconds: float, seed: int, report: Callable[[str], None]) -> Counts:
    """Feed lines for some seconds while instances and the broker are killed, and wait until everything is counted."""
    random, bootstrap = Random(seed), cluster.bootstrap_servers
    wanted = [cka.NewTopic(topic, PARTITIONS, 1) for topic in ("lines", "counts")]
    admin = cka.AdminClient({"bootstrap.servers": bootstrap, **QUIET})
    for made in admin.create_topics(wanted).values():
        made.result(20)
    with contextlib.ExitStack() as stack:
        program = WordCount(directory, bootstrap)
        stack.callback(program.stop)
        for instance in range(INSTANCES):
            program.start(instance)
        feed, counts = Feed(bootstrap, random), Counts(bootstrap)
        stack.callback(counts.close)
        _wait(lambda: bool(counts.counted), feed, counts, program)
        began, deck = time.monotonic(), itertools.cycle(random.sample(DECK, len(DECK)))
        while time.monotonic() < began + seconds:
            pause_until = time.monotonic() + random.uniform(1, 4)
            _wait(lambda: time.monotonic() > pause_until, feed, counts, program)  # noqa: B023
            if next(deck) == BROKER:
                report(f"{time.monotonic() - began:.1f} s: the broker is killed, {counts.counted.total()} counted")
                cluster.kill()
                cluster.restart()
            else:
                instance = random.randrange(INSTANCES)
                report(f"{time.monotonic() - began:.1f} s: instance {instance} is killed")
                program.kill(instance)
                program.start(instance)
        feed.end()
        deadline = time.monotonic() + COUNTED_WITHIN_S
        while counts.counted != feed.expected:
            program.check()
            missing = feed.expected - counts.counted
            assert time.monotonic() < deadline, f"not counted within {COUNTED_WITHIN_S:.0f} s: {missing}"
            counts.read()
            assert counts.counted <= feed.expected, f"counted twice: {counts.counted - feed.expected}"
        report(f"{time.monotonic() - began:.1f} s: {counts.counted.total()} words counted, {program.starts} starts")
        # Nothing may follow.
        for _ in range(10):
            counts.read()
        assert counts.counted == feed.expected
    return counts


def _wait(met: Callable[[], bool], feed: Feed, counts: Counts, program: WordCount) -> None:
    """Feed lines and read counts until `met`."""
    deadline = time.monotonic() + COUNTED_WITHIN_S
    while not met():
        program.check()
        assert time.monotonic() < deadline, "the word count does not begin"
        for _ in range(int(LINES_PER_S * WAIT_S)):
            feed.line()
        counts.read()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1_000_000))
    parser.add_argument("--cluster", choices=("kgctl", "kafka"), default="kgctl")
    given = parser.parse_args()
    directory = Path(tempfile.mkdtemp(prefix="kgctl-word-count-"))
    print(f"seed {given.seed}, in {directory}", flush=True)
    with clusters.start(given.cluster) as cluster:
        run(cluster, directory, given.seconds, given.seed, lambda line: print(line, flush=True))


if __name__ == "__main__":
    main()
