"""Damage at rest: a broker serves everything acknowledged or refuses; with --accept-loss it keeps what is whole."""

from __future__ import annotations

import copy
import re
import shutil
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from random import Random

from broker.protocol.errors import ErrorCode
from broker.protocol.record_batch import Record, build_batch
from broker.server.failures import DAMAGE, REPLACED, STORAGE
from tests.durability import images, judge
from tests.durability.damages import STORE, WAL, Damage, Vandal
from tests.durability.images import QUIET, Image, Refused, Writer, as_stored, batch_of
from tests.durability.judge import Answers, Key
from tests.durability.parts import Violation
from tests.durability.rescuing import check_rescue
from tests.durability.spawning import Nursery, Process
from tests.harness.requests import produce_request
from tests.harness.wire_client import ConnectionClosed, WireClient

ROUNDS_PER_IMAGE = 8
SHOWN = 12
TRAILER_AT_MOST = 128
LATER_MS = 60_000


def run(directory: Path, seed: int, rounds: int, report: Callable[[str], None]) -> dict[str, object]:
    """A round has the seed `seed + round`: to repeat round 12 of seed 100, run one round with seed 112."""
    figures: Counter[str] = Counter()
    failures: list[str] = []
    with Nursery() as nursery:
        image: Image | None = None
        for number in range(rounds):
            at = seed + number
            where = directory / str(at)
            if image is None or at % ROUNDS_PER_IMAGE == 0:
                with suppress(FileNotFoundError):
                    shutil.rmtree(directory / "image")
                image = images.make(nursery, directory / "image", Random(at // ROUNDS_PER_IMAGE))
            case = Case(nursery, where, image, Random(at), figures)
            try:
                case.run()
            except (AssertionError, OSError, ConnectionClosed) as error:
                failures.append(f"round {number} (seed {at}; {case.damage}): {type(error).__name__}: {error}")
                report(failures[-1])
                shutil.copytree(image.directory, where / "image")
            else:
                shutil.rmtree(where)
            figures["rounds"] += 1
        figures["starts"] = nursery.starts
    if failures:
        raise Violation(f"{len(failures)} of {rounds} rounds: " + " | ".join(failures[:SHOWN]))
    return dict(figures)


class Case:
    """One damage to a copy of an image, and the starts after it."""

    def __init__(
        self,
        nursery: Nursery,
        directory: Path,
        image: Image,
        random: Random,
        figures: Counter[str],
        fault: str | None = None,
    ) -> None:
        self._nursery, self._image, self._random, self._figures = nursery, image, random, figures
        self._original = image.ledger
        self._ledger = copy.deepcopy(image.ledger)  # with what the case appends
        self._fault = fault
        self._directory = directory / "data"
        directory.mkdir(parents=True, exist_ok=True)
        shutil.copytree(image.directory, self._directory)
        self.damage = Damage()
        self._files: dict[str, bytes] = {}
        self._keep_log = False

    def run(self) -> None:
        vandal = Vandal(self._directory, self._image, self._random)
        if self._random.random() < 0.15:
            self._damage_under_a_broker(vandal)
        self.take(vandal.damage if vandal.damage.files else vandal.damage_at_random())
        if self._random.random() < 0.15:
            self._rescues()
        if self._random.random() < 0.2 or not self.serves_or_refuses():
            self.accepts_loss()

    def _damage_under_a_broker(self, vandal: Vandal) -> None:
        """Damage files while a broker writes. It may stop; what it acknowledges until then counts."""
        process = self._spawn().ready()
        writer = Writer(self._ledger, self._random, age_ms=LATER_MS)
        self.damage = vandal.damage
        try:
            with process.client() as client:
                self._write(client, writer)
                vandal.damage_under_a_broker()
                self._write(client, writer)
        except (ConnectionClosed, ConnectionError):
            self._check_end(process, REPLACED)
        except Refused:
            self._figures["appends refused"] += 1
        self._leave(process)
        self._original = copy.deepcopy(self._ledger)
        self._figures["damaged under a broker"] += 1

    def _write(self, client: WireClient, writer: Writer) -> None:
        for _ in range(self._random.randrange(1, 15)):
            writer.later()
            writer.produce(client, "a", self._random.randrange(3))
            writer.commit(client)

    def take(self, damage: Damage) -> None:
        """Keep a copy of the directory, which was damaged, and remember its segments."""
        self.damage = damage
        self._files = judge.segment_files(self._directory)
        shutil.copytree(self._directory, self._directory.with_name("damaged"))

    def refuses_and_repairs(self) -> None:
        """No start can serve: it is refused and changes no segment."""
        for _ in range(2):
            process = self._spawn()
            assert not process.starts(), "the broker started"
            self._check_refusal(process)
            assert judge.segment_files(self._directory) == self._files, "a start that was refused changed segments"
            self._figures["refused"] += 1
        self.accepts_loss()

    def _rescues(self) -> None:
        damaged = self._directory.with_name("damaged")
        check_rescue(self._nursery, damaged, self._original, self.damage, self._random, self._figures)

    # -- without --accept-loss

    def serves_or_refuses(self) -> bool:
        """True if everything acknowledged is served."""
        self._killed_starts()
        process = self._spawn()
        if not process.starts():
            self._check_refusal(process)
            self._figures["refused"] += 1
            return False
        try:
            with process.client() as client:
                answers = judge.examine(client, self._ledger, self._random)
                self._check_errors(process, answers)
                self._check_complete(answers)
                if not answers.errors and not answers.refused:
                    self._check_appends(client, answers, exact=not self.damage.leaves_no_evidence)
        except (ConnectionClosed, ConnectionError):
            self._check_end(process)
            return False
        self._leave(process)
        if not answers.errors and not answers.refused and self._random.random() < 0.3:
            self._check_again(answers)
        self._figures["error named" if answers.errors or answers.refused else "served"] += 1
        return not answers.errors

    def _check_end(self, process: Process, *codes: int) -> None:
        """The store is read while the broker runs: damage to it ends the broker."""
        process.wait(5)
        self._check_refusal(process, DAMAGE, STORAGE, *codes)
        self._figures["stopped"] += 1

    def _check_refusal(self, process: Process, *codes: int) -> None:
        lines, expected = process.error_lines(), codes or (DAMAGE,)
        assert process.code in expected, f"ended with {process.code} instead of {expected}: {process.stderr[-1000:]}"
        assert len(lines) == 1, f"not one line: {lines}"
        assert re.search(re.escape(str(self._directory)) + r"/[\w.-]+", lines[0]), f"the line names no file: {lines[0]}"
        for key, topic_id in self._keys():
            lost = self._whole(key, topic_id) - self._whole(key, topic_id, judge.segment_files(self._directory))
            assert not lost, f"a start that was refused removed batches of {key} at {sorted(lost)}"

    def _check_complete(self, answers: Answers) -> None:
        """Everything acknowledged is served, or refused with an error."""
        assert not answers.wrong, "; ".join(answers.wrong[:5])
        if self.damage.leaves_no_evidence:
            self._check_older(answers)
            return
        assert not answers.missing_topics, f"topics are gone: {answers.missing_topics}"
        assert not answers.returned_topics, f"deleted topics are back: {answers.returned_topics}"
        for key, topic_id in self._keys():
            known = self._ledger.partitions[key]
            assert answers.ends[key] == known.end, f"{key} ends at {answers.ends[key]} instead of {known.end}"
            assert answers.starts[key] == known.log_start, (
                f"{key} starts at {answers.starts[key]} instead of {known.log_start}"
            )
            refused = {offset for damaged, offset in answers.errors if damaged == key}
            hidden = refused & judge.readable_batches(self._with_trailers(), topic_id, key[1], known)
            assert not hidden, f"batches of {key} before the damage are refused: {sorted(hidden)}"
            self._figures["whole batches behind damage refused"] += len(refused & self._whole(key, topic_id))
            missing = {b.base_offset for b in known.batches if b.last_offset >= known.log_start} - answers.served[key]
            first = {known.log_start} if known.log_start in refused else set()
            silent = {base for base in missing - refused if not (first and base < known.log_start)}
            assert not silent, f"batches of {key} are neither served nor refused: {sorted(silent)}"
        if not answers.refused:
            for commit, offsets in self._ledger.commits.items():
                found = answers.commits.get(commit)
                assert found == offsets[-1], f"the committed offset of {commit} is {found} instead of {offsets[-1]}"

    def _check_older(self, answers: Answers) -> None:
        """The store is complete and old. Segments that it does not know are set aside, and the log names them."""
        log = self._log()
        silent = {name for name in answers.missing_topics if self._ledger.topics[name][1].hex() not in log}
        assert not silent, f"topics are gone silently: {silent}"
        for key, topic_id in self._keys(answers):
            if answers.ends[key] < self._ledger.partitions[key].end and not self._is_damaged(key, topic_id):
                named = re.search(rf"{topic_id.hex()}/{key[1]}/\S+ .* is kept as", log)
                self._figures["older stores: ends named" if named else "older stores: ends not named"] += 1

    def _with_trailers(self) -> dict[str, bytes]:
        """Files whose last bytes are as they were: a damaged trailer makes all of its segment doubtful."""
        end = slice(-TRAILER_AT_MOST, None)
        return {
            name: content
            for name, content in self._files.items()
            if (original := self._image.directory / name).exists() and original.read_bytes()[end] == content[end]
        }

    def _is_damaged(self, key: Key, topic_id: bytes) -> bool:
        return any(name.startswith(f"segments/{topic_id.hex()}/{key[1]}/") for name in self.damage.files)

    def _check_errors(self, process: Process, answers: Answers) -> None:
        """Each partition that was refused has a line in the log that names one of its files."""
        log = self._log()
        for (topic, partition), offset in answers.errors:
            _, topic_id = self._ledger.topics[topic]
            named = f"{topic_id.hex()}/{partition}/"
            assert named in log, (
                f"the log does not name the damaged file of {topic}-{partition} at {offset}: {log[-600:]}"
            )

    # -- with --accept-loss

    def accepts_loss(self) -> None:
        if self._random.random() < 0.5:
            # As the user finds it, without a start in between.
            shutil.rmtree(self._directory)
            shutil.copytree(self._directory.with_name("damaged"), self._directory)
        self._killed_starts("--accept-loss")
        process = self._spawn("--accept-loss")
        if not process.starts():
            self._check_refusal(process)
            self._figures["refused with --accept-loss"] += 1
            self._rescues()
            return
        try:
            with process.client() as client:
                answers = judge.examine(client, self._ledger, self._random)
                self._check_told(process, answers)
                self._check_kept(answers)
                self._check_appends(client, answers, exact=False)
        except (ConnectionClosed, ConnectionError):
            self._check_end(process)
            return
        self._leave(process)
        self._figures["repaired"] += 1
        self._check_again(answers)

    def _check_told(self, process: Process, answers: Answers) -> None:
        lines = judge.losses(self._log())
        told, complete = judge.told(lines)
        doubt = any("cannot be ruled out" in line for line in lines)
        shown = "; told: " + (" | ".join(lines) or "nothing")
        assert not answers.wrong, "; ".join(answers.wrong[:5]) + shown
        assert not answers.errors, f"repaired, and still refused: {answers.errors[:5]}{shown}"
        told_of_store = any("store.db" in line for line in lines)
        changed = answers.missing_topics | answers.returned_topics
        if self.damage.leaves_no_evidence:
            # The store is complete and old: the log names the directories that it does not know.
            log = self._log()
            changed = {name for name in answers.missing_topics if self._ledger.topics[name][1].hex() not in log}
            told_of_store = told_of_store or not changed
        assert told_of_store or not changed, f"{changed} are gone, or back after their deletion{shown}"
        for key, topic_id in self._keys(answers):
            known = self._ledger.partitions[key]
            served = answers.offsets(key, known)
            lost = known.offsets - served
            whole = self._whole(key, topic_id) - answers.served[key]
            assert not whole, f"whole batches of {key} are lost: {sorted(whole)}{shown}"
            back = answers.starts[key] != known.log_start
            assert told_of_store or not back, (
                f"{key} starts at {answers.starts[key]} instead of {known.log_start}{shown}"
            )
            unsure = (doubt or self.damage.leaves_no_evidence) and self._is_damaged(key, topic_id)
            assert unsure or answers.ends[key] >= known.end, (
                f"{key} ends at {answers.ends[key]}, was {known.end}{shown}"
            )
            assert unsure or not complete or lost <= told[key], (
                f"{key}: {_spell(lost - told[key])} are lost silently{shown}"
            )
            assert not told[key] & served, f"{key}: {_spell(told[key] & served)} are told as lost, but served{shown}"
            self._figures["records lost and told"] += len(lost)
            self._figures["records served"] += len(served)
        for commit, offsets in self._ledger.commits.items():
            found = answers.commits.get(commit)
            assert found is None or found in offsets or commit[1] in answers.missing_topics, (
                f"{commit} never was {found}{shown}"
            )
            same = found == offsets[-1]
            assert same or told_of_store, f"{commit} is {found}, was {offsets[-1]}{shown}"

    def _check_kept(self, answers: Answers) -> None:
        """The damaged files of partitions that lost records are kept."""
        if self.damage.leaves_no_evidence:
            # What lies behind the old ends counts as written by requests that were never answered.
            return
        now = judge.segment_files(self._directory)
        for key, topic_id in self._keys(answers):
            known = self._ledger.partitions[key]
            if known.offsets == answers.offsets(key, known):
                continue
            prefix = f"segments/{topic_id.hex()}/{key[1]}/"
            for name in self.damage.files:
                content = self._files.get(name, b"")
                if name.startswith(prefix) and content.strip(b"\0"):
                    used = content.rstrip(b"\0")
                    kept = any(found.startswith(used) for found in now.values())
                    assert kept, f"{key} lost records, and {name} is not kept as it was"

    def _check_again(self, before: Answers) -> None:
        """A start without --accept-loss serves the same."""
        process = self._spawn()
        try:
            if not process.starts():
                raise ConnectionClosed
            with process.client() as client:
                answers = judge.examine(client, self._ledger, self._random)
        except (ConnectionClosed, ConnectionError):
            # No start reads all pages of the store; but what was accepted once is not refused later.
            self._check_end(process)
            ended = process.stderr[-1000:]
            is_page = bool(self.damage.files & {STORE, WAL}) and "checksum" in ended
            assert is_page, f"the next run ended: {ended}"
            return
        self._leave(process)
        assert not answers.wrong, "in the next run: " + "; ".join(answers.wrong[:5])
        assert not answers.errors, f"in the next run: refused {answers.errors[:5]}"
        for key in before.served.keys() | answers.served.keys():
            changed = sorted(answers.served[key] ^ before.served[key])
            assert not changed, f"the next run serves {key} differently at {changed}"
        assert answers.commits == before.commits, "the next run has other committed offsets"

    # -- both

    def _check_appends(self, client: WireClient, answers: Answers, *, exact: bool) -> None:
        """A new record of each partition gets an offset that no record had."""
        if exact:
            self._check_duplicate(client)
        now = 1 + max(
            t for known in self._ledger.partitions.values() for batch in known.batches for _, t in batch.times
        )
        for topic, partition in self._ledger.partitions:
            if topic in answers.missing_topics:
                continue
            end = answers.ends[topic, partition]
            key = b"new" if topic == images.COMPACTED else None
            content = build_batch([Record(0, now, key, b"new")], base_offset=0)
            row = (
                client.ask(produce_request(topic, content, partition=partition), 12).responses[0].partition_responses[0]
            )
            if self._store_is_refused(row.error_code):
                return
            assert row.error_code == ErrorCode.NONE, f"Produce to {topic}-{partition}: error {row.error_code}"
            assert row.base_offset == end, f"{topic}-{partition} ended at {end}, and gave out {row.base_offset}"
            known = self._ledger.partitions[topic, partition]
            known.batches = [batch for batch in known.batches if batch.base_offset < end]
            known.batches.append(batch_of(as_stored(content, end)))
            answers.served[topic, partition].add(end)

    def _check_duplicate(self, client: WireClient) -> None:
        known = self._ledger.partitions.get(("own", 0))
        if known is None or not known.batches:
            return
        last = known.batches[-1]
        row = client.ask(produce_request("own", as_stored(last.content, 0)), 12).responses[0].partition_responses[0]
        given = (row.error_code, row.base_offset)
        if self._store_is_refused(row.error_code):
            return
        assert given == (ErrorCode.NONE, last.base_offset), f"a repeated batch is not recognized: {given}"

    def _store_is_refused(self, code: int) -> bool:
        """No start reads all pages of the store: a request that meets a damaged one is refused, and the log names it."""
        is_named = code in judge.DAMAGE_CODES and f"{self._directory}/{STORE}" in self._log()
        self._figures["store damage named"] += is_named
        return is_named

    def _keys(self, answers: Answers | None = None) -> Iterator[tuple[Key, bytes]]:
        for key in self._ledger.partitions:
            if answers is None or key[0] not in answers.missing_topics:
                yield key, self._ledger.topics[key[0]][1]

    def _whole(self, key: Key, topic_id: bytes, files: dict[str, bytes] | None = None) -> set[int]:
        files = self._files if files is None else files
        return judge.whole_batches(files, topic_id, key[1], self._ledger.partitions[key])

    def _killed_starts(self, *arguments: str) -> None:
        """In some rounds, one or two starts are killed at a change of a file first."""
        self._mark_log()
        if self._random.random() < 0.6:
            return
        for _ in range(self._random.randrange(1, 3)):
            self._keep_log = True
            process = self._spawn(*arguments, killed_at=self._random.randrange(1, 60))
            if process.starts():
                process.kill()
            self._figures["starts killed"] += process.code == -signal.SIGKILL
        self._keep_log = True

    def _mark_log(self) -> None:
        """The log counts from here."""
        log = self._directory / "broker.log"
        self._log_size = log.stat().st_size if log.exists() else 0

    def _spawn(self, *arguments: str, killed_at: int | None = None) -> Process:
        # What a killed start told counts as told.
        if not self._keep_log:
            self._mark_log()
        self._keep_log = False
        return self._nursery.spawn(
            self._directory,
            "--durability",
            self._image.durability,
            *QUIET,
            *arguments,
            fault=self._fault,
            killed_at=killed_at,
        )

    def _log(self) -> str:
        """What the last start logged."""
        return (self._directory / "broker.log").read_bytes()[self._log_size :].decode(errors="replace")

    def _leave(self, process: Process) -> None:
        if self._random.random() < 0.5:
            process.kill()
        else:
            process.stop()


def _spell(offsets: set[int]) -> str:
    return f"{len(offsets)} offsets from {min(offsets)} to {max(offsets)}"
