"""Flips and cuts in segments and indexes, under a running broker and at rest: every answer is right, or an error."""

from __future__ import annotations

import os
import shutil
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import NamedTuple

from broker.protocol.errors import ErrorCode
from broker.protocol.messages.alter_configs import AlterConfigsRequest
from broker.protocol.record_batch import decode_records
from broker.server.failures import DAMAGE
from tests.durability import judge
from tests.durability.images import ALL, QUIET, Ledger, Refused, Writer
from tests.durability.judge import Answers, Key
from tests.durability.parts import Violation
from tests.durability.spawning import Ended, Nursery, Process
from tests.harness.running import until
from tests.harness.wire_client import ConnectionClosed, WireClient

# Dense indexes, so that each has many entries.
DENSE = {**ALL, "index_interval_bytes": "64"}
TOPICS = {"plain": (2, ALL), "dense": (2, DENSE), "large": (1, ALL)}
BATCHES = 60
ROUNDS_PER_BROKER = 100
COMPACTED_AT_ONCE = 10
COMPACTS_WITHIN_S = 15.0
CONSUMES_WITHIN_S = 10.0
PLAN_EVERY = 20
GROUP = "readers"
SHOWN = 12
NEVER_MS, LONG_AGO_MS = str(10**12), "0"


class Change(NamedTuple):
    """One damage to one file, and what undoes it."""

    name: str
    words: str
    before: bytes
    end: int
    """Behind the last position that may differ."""


def run(directory: Path, seed: int, rounds: int, report: Callable[[str], None]) -> dict[str, object]:
    """Every 100 rounds have a broker of their own, whose seed is `seed` plus the number of rounds before."""
    figures: Counter[str] = Counter()
    failures: list[str] = []
    with Nursery() as nursery:
        for first in range(0, rounds, ROUNDS_PER_BROKER):
            campaign = Campaign(nursery, directory / str(seed + first), Random(seed + first), figures)
            count = min(ROUNDS_PER_BROKER, rounds - first)
            try:
                campaign.run(
                    count, lambda text, at=seed + first: failures.append(f"seed {at}, {text}") or report(failures[-1])
                )  # type: ignore[misc]
            finally:
                campaign.end()
    if failures:
        raise Violation(f"{len(failures)} of {rounds} rounds: " + " | ".join(failures[:SHOWN]))
    return dict(figures)


class Campaign:
    """One data directory, damaged and restored many times."""

    def __init__(
        self, nursery: Nursery, directory: Path, random: Random, figures: Counter[str], fault: str | None = None
    ) -> None:
        self._nursery, self._random, self._figures, self._fault = nursery, random, figures, fault
        directory.mkdir(parents=True)
        self._directory = directory / "data"
        self._durability = random.choice(("power", "process"))
        self._ledger = Ledger()
        self._writer = Writer(self._ledger, random)
        self._process: Process | None = None
        self._log_at = 0

    def run(self, rounds: int, failed: Callable[[str], None]) -> None:
        self._fill()
        compacted = COMPACTED_AT_ONCE if rounds >= 2 * COMPACTED_AT_ONCE else 0
        for number in range(rounds - compacted):
            change: Change | None = None
            self._log_at = self._log_size()
            try:
                change = self._damage()
                self._round(change, number)
            except (AssertionError, OSError, ConnectionClosed) as error:
                words = f"{self._label(change.name)}: {change.words}" if change else "no damage"
                failed(f"round {number} ({words}): {type(error).__name__}: {error}")
                self._keep(number)
            self._figures["rounds"] += 1
            if change is not None and not self._restore(change):
                failed(
                    f"round {number} ({self._label(change.name)}: {change.words}): restored, it does not start: {self._last_words()}"
                )
                self._keep(number)
                return
        if compacted:
            try:
                self._compact(compacted)
            except (AssertionError, OSError, ConnectionClosed) as error:
                failed(f"compaction: {type(error).__name__}: {error}")
                self._keep(rounds)
            self._figures["rounds"] += compacted

    def end(self) -> None:
        if self._process is not None:
            self._process.kill()

    def _keep(self, number: int) -> None:
        shutil.copytree(self._directory, self._directory.with_name(f"round-{number}"), dirs_exist_ok=True)

    def _fill(self) -> None:
        with self._start().client() as client:
            for name, (partitions, configs) in TOPICS.items():
                self._writer.create(client, name, partitions, configs)
            for number in range(BATCHES):
                self._writer.later()
                for topic, partition in self._partitions():
                    if topic != "large" or number % 3 == 0:
                        self._writer.produce(client, topic, partition)

    def _partitions(self) -> list[Key]:
        return [(name, index) for name, (count, _) in TOPICS.items() for index in range(count)]

    def _start(self) -> Process:
        if self._process is None or self._process.code is not None:
            settings = ("--durability", self._durability, *QUIET[2:], "--override", "log.cleaner.backoff.ms=50")
            self._log_at = self._log_size()
            self._process = self._nursery.spawn(self._directory, *settings, fault=self._fault)
            self._process.starts()
        return self._process

    def _log_size(self) -> int:
        log = self._directory / "broker.log"
        return log.stat().st_size if log.exists() else 0

    def _log(self) -> str:
        return (self._directory / "broker.log").read_bytes()[self._log_at :].decode(errors="replace")

    # -- a round

    def _damage(self) -> Change:
        random = self._random
        topic, partition = random.choice(self._partitions())
        suffix = ".index" if random.random() < 0.25 else ".log"
        names = self._names(topic, partition, suffix)
        name = names[-1] if random.random() < 0.3 else random.choice(names)
        self._at_rest = random.random() < 0.2
        if self._at_rest:
            assert self._process is not None
            self._process.stop() if random.random() < 0.5 else self._process.kill()
        elif random.random() < 0.6:
            # The broker has just checked what is about to be damaged.
            with self._start().client() as client:
                judge.read_partition(
                    client, (topic, partition), self._ledger.partitions[topic, partition], Answers(), random
                )
        self._key = (topic, partition)
        return self._change(name)

    def _names(self, topic: str, partition: int, suffix: str) -> list[str]:
        root = f"segments/{self._ledger.topics[topic][1].hex()}/{partition}"
        return sorted(str(path.relative_to(self._directory)) for path in (self._directory / root).glob(f"*{suffix}"))

    def _label(self, name: str) -> str:
        for topic, (_, topic_id) in self._ledger.topics.items():
            name = name.replace(topic_id.hex(), topic)
        return name

    def _change(self, name: str) -> Change:
        """Change the file in place, as another process or a device does."""
        random, path = self._random, self._directory / name
        before = path.read_bytes()
        used = len(before.rstrip(b"\0")) or 1
        at = random.randrange(used)
        kind = random.random()
        with path.open("r+b") as file:
            if kind < 0.3:
                file.truncate(at)
                return Change(name, f"cut from {len(before)} to {at} bytes", before, len(before))
            if kind < 0.75:
                count, bit = 1, random.randrange(8)
                new, words = bytes([before[at] ^ 1 << bit]), f"flipped bit {bit} of byte {at}"
            else:
                count = min(random.choice((2, 8, 100)), len(before) - at)
                new, words = (
                    random.choice((bytes(count), random.randbytes(count))),
                    f"overwrote {count} bytes from {at}",
                )
            os.pwrite(file.fileno(), new, at)
        return Change(name, words, before, at + count)

    def _restore(self, change: Change) -> bool:
        """Undo the damage. Returns whether the broker runs."""
        if self._at_rest and self._process is not None:
            self._process.kill()
        path = self._directory / change.name
        content = change.before
        if path.suffix == ".log":
            content = self._true_content(change)
        with path.open("r+b" if path.exists() else "wb") as file:
            file.write(content)
        return self._start().code is None

    def _last_words(self) -> str:
        return self._process.stderr[-500:] if self._process is not None else ""

    def _true_content(self, change: Change) -> bytes:
        """The file as it was, with what was appended since. It may have been sealed meanwhile."""
        base, later = _base(change.name), [_base(name) for name in self._names(*self._key, ".log")]
        until = min((other for other in later if other > base), default=self._ledger.partitions[self._key].end)
        true = b"".join(b.content for b in self._ledger.partitions[self._key].batches if base <= b.base_offset < until)
        return change.before if change.before.startswith(true) else true

    def _round(self, change: Change, number: int) -> None:
        kind = f"{'at rest' if self._at_rest else 'live'}: "
        process = self._start()
        if process.code is not None:
            self._check_end(process, change)
            self._figures[kind + "refused to start"] += 1
            return
        files = judge.segment_files(self._directory)
        try:
            with process.client() as client:
                appended = self._random.random() < 0.25
                if appended:
                    self._append(client)
                answers = self._examine(client)
                if number % PLAN_EVERY == 0:
                    self._plan(process, answers)
                elif number % PLAN_EVERY == PLAN_EVERY // 2:
                    self._consume(process, answers)
        except (ConnectionClosed, ConnectionError):
            # A broker may also stop when it finds damage where it writes.
            with suppress(Ended):
                process.wait(3, kill=False)
            assert process.code is not None, "the broker closed a connection instead of answering with an error"
            self._check_end(process, change)
            self._figures[kind + "stopped"] += 1
            return
        self._check(change, answers, files, appended=appended)
        self._figures[kind + ("error named" if answers.errors or answers.refused else "all served")] += 1

    def _append(self, client: WireClient) -> None:
        """One more batch. A refusal because of the damage is fine: the ledger does not list it then."""
        self._writer.later()
        try:
            self._writer.produce(client, *self._key)
        except Refused:
            self._figures["appends refused"] += 1

    def _examine(self, client: WireClient) -> Answers:
        answers, known = Answers(), self._ledger.partitions[self._key]
        # The order of questions decides what the broker has checked before the next one.
        if self._random.random() < 0.5:
            self._look_up_blindly(client, answers)
        judge.read_partition(client, self._key, known, answers, self._random)
        judge.look_up(client, self._key, known, answers, self._random)
        return answers

    def _look_up_blindly(self, client: WireClient, answers: Answers) -> None:
        """ListOffsets as the first question after the damage."""
        known = self._ledger.partitions[self._key]
        whole = Answers(served={self._key: {batch.base_offset for batch in known.batches}})  # type: ignore[arg-type]
        judge.look_up(client, self._key, known, whole, self._random)
        answers.wrong += whole.wrong
        answers.refused += whole.refused

    def _check(self, change: Change, answers: Answers, files: dict[str, bytes], *, appended: bool) -> None:
        topic, partition = self._key
        known = self._ledger.partitions[self._key]
        assert not answers.wrong, "; ".join(answers.wrong[:4])
        assert answers.ends.get(self._key) == known.end, f"ends at {answers.ends.get(self._key)} instead of {known.end}"
        refused = {offset for _, offset in answers.errors}
        silent = {batch.base_offset for batch in known.batches} - answers.served[self._key] - refused
        assert not silent, f"neither served nor refused: {sorted(silent)}"
        if answers.errors or answers.refused:
            named = f"{self._ledger.topics[topic][1].hex()}/{partition}/{Path(change.name).name}"
            assert named in self._log(), f"the log does not name {named}: {self._log()[-500:]}"
        if change.name.endswith(".index"):
            assert not refused, f"a damaged index hides {sorted(refused)}"
        else:
            readable = judge.readable_batches(files, self._ledger.topics[topic][1], partition, known)
            hidden = refused & readable
            in_doubt = appended or self._in_trailer(change)
            assert in_doubt or not hidden, f"batches before the damage are refused: {sorted(hidden)}"
            self._figures["whole batches without a trailer refused"] += len(hidden)

    def _in_trailer(self, change: Change) -> bool:
        """Whether the damage reaches behind the batches of a sealed segment: then all of it is in doubt, as after a cut."""
        base = _base(change.name)
        size = 0
        for batch in self._ledger.partitions[self._key].batches:
            if batch.base_offset >= base:
                if not change.before.startswith(batch.content, size):
                    break
                size += len(batch.content)
        return change.end > size

    def _check_end(self, process: Process, change: Change) -> None:
        lines = process.error_lines()
        assert process.code == DAMAGE, f"ended with {process.code} instead of {DAMAGE}: {process.stderr[-500:]}"
        assert len(lines) == 1, f"not one line: {lines}"
        assert str(self._directory) in lines[0], f"the line names no file: {lines[0]}"

    def _plan(self, process: Process, answers: Answers) -> None:
        """`kgctl groups reset-offsets --to-datetime`: the plan has the true offset, or the command fails."""
        from datetime import UTC, datetime

        from tests.harness.commandline import Kgctl

        topic, partition = self._key
        known = self._ledger.partitions[self._key]
        stamps = [stamp for batch in known.batches for stamp in batch.times]
        moment = self._random.choice(stamps)[1]
        text = datetime.fromtimestamp(moment / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment % 1000:03}"
        host, port = process.address
        result = Kgctl(f"{host}:{port}")(
            "groups",
            "reset-offsets",
            GROUP,
            "--topic",
            f"{topic}:{partition}",
            "--to-datetime",
            text + "Z",
            "--create",
            "-o",
            "json",
        )
        expected = next(offset for offset, stamp in stamps if stamp >= moment)
        if result.exit_code == 0:
            assert f'"new_offset": {expected}' in result.stdout or f'"NEW-OFFSET": {expected}' in result.stdout, (
                f"--to-datetime {text}: expected {expected}, planned {result.stdout}"
            )
            self._figures["plans right"] += 1
        else:
            assert answers.errors or answers.refused, f"--to-datetime failed without damage: {result.output}"
            self._figures["plans refused"] += 1

    def _consume(self, process: Process, answers: Answers) -> None:
        """A librdkafka consumer gets the records in order up to the damage, and then an error."""
        import confluent_kafka as ck

        topic, partition = self._key
        known = self._ledger.partitions[self._key]
        host, port = process.address
        errors: list[str] = []
        consumer = ck.Consumer(
            {
                "bootstrap.servers": f"{host}:{port}",
                "group.id": "reading",
                "enable.partition.eof": True,
                "auto.offset.reset": "error",
                "check.crcs": True,
                "error_cb": lambda error: errors.append(str(error)),
            }
        )
        consumer.assign([ck.TopicPartition(topic, partition, known.log_start)])
        expected = [record for batch in known.batches for record in decode_records(batch.content)]
        received, deadline = 0, time.monotonic() + CONSUMES_WITHIN_S
        try:
            while received < len(expected) and not errors and time.monotonic() < deadline:
                message = consumer.poll(0.2)
                if message is None:
                    continue
                if message.error():
                    errors.append(str(message.error()))
                    continue
                found, record = (message.offset(), message.value()), expected[received]
                assert found == (record.offset, record.value), f"a consumer got offset {found[0]}, not {record.offset}"
                received += 1
        finally:
            consumer.close()
        first = min((offset for _, offset in answers.errors), default=known.end)
        assert received == sum(record.offset < first for record in expected), (
            f"a consumer got {received} records and {errors or 'no error'}; the first refused offset is {first}"
        )
        assert errors or not answers.errors, "a consumer got no error"
        self._figures["consumers that met damage" if errors else "consumers that read all"] += 1

    # -- compaction

    def _compact(self, count: int) -> None:
        """Damage sealed segments of compacted topics, then let compaction read them."""
        random = self._random
        topics = [f"keys-{number}" for number in range(count)]
        waiting = {
            **ALL,
            "cleanup_policy": "compact",
            "min_cleanable_dirty_ratio": "0",
            "min_compaction_lag_ms": NEVER_MS,
        }
        process = self._start()
        self._log_at = self._log_size()
        changes: dict[str, Change] = {}
        with process.client() as client:
            for topic in topics:
                self._writer.create(client, topic, 1, waiting)
                for _ in range(30):
                    self._writer.later()
                    self._writer.produce(client, topic, 0)
                if random.random() < 0.5:
                    key = (topic, 0)
                    judge.read_partition(client, key, self._ledger.partitions[key], Answers(), random)
                changes[topic] = self._change(random.choice(self._names(topic, 0, ".log")[:-1]))
            for topic in topics:
                configs = {
                    name.replace("_", "."): value
                    for name, value in (waiting | {"min_compaction_lag_ms": LONG_AGO_MS}).items()
                }
                resource = AlterConfigsRequest.Resource(
                    resource_type=2,
                    resource_name=topic,
                    configs=[AlterConfigsRequest.Config(name=name, value=value) for name, value in configs.items()],
                )
                answer = client.ask(AlterConfigsRequest(resources=[resource]))
                assert answer.responses[0].error_code == ErrorCode.NONE, answer.responses[0].error_message
            for topic in topics:
                until(lambda topic=topic: self._is_compacted(topic), COMPACTS_WITHIN_S)  # type: ignore[misc]
            for topic in topics:
                self._check_compacted(client, topic, changes[topic])
        self._figures["compactions"] += count

    def _is_compacted(self, topic: str) -> bool:
        return f"compaction of {topic}-0 stopped" in self._log() or any(
            ".1." in n for n in self._names(topic, 0, ".log")
        )

    def _check_compacted(self, client: WireClient, topic: str, change: Change) -> None:
        """Each key has its last value, unless that is in a batch that is refused; nothing else is served."""
        key, known = (topic, 0), self._ledger.partitions[topic, 0]
        records = {record.offset: record for batch in known.batches for record in decode_records(batch.content)}
        latest = {record.key: record.offset for record in records.values()}
        served, refused = judge.read_records(client, key, known)
        about = f"{topic} ({change.words} of {Path(change.name).name})"
        for offset, record in served.items():
            assert records.get(offset) == record, f"{about}: compaction made a record at offset {offset}"
        lost = {offset for offset in latest.values() if offset not in served and offset not in refused}
        assert not lost, f"{about}: the last values of keys at {sorted(lost)} are gone silently"
        if refused:
            assert Path(change.name).name in self._log(), f"{about}: the log does not name it"


def _base(name: str) -> int:
    return int(Path(name).name.partition(".")[0])
