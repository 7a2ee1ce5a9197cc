"""Topics that compaction and retention work on: records of days ago, repeated keys, tombstones, a log start that moves."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field

from broker.protocol.compression import Codec
from broker.protocol.record_batch import Record, build_batch
from tests.harness.commandline import Kgctl, append

HOUR_MS, DAY_MS = 3_600_000, 86_400_000
ACCOUNTS, SENSORS, SENSOR_PARTS = "accounts", "sensors", 2
# The records of days ago are in the active segment, so neither compaction nor retention removes any of them.
ONE_SEGMENT = (f"segment.ms={400 * DAY_MS}", "min.cleanable.dirty.ratio=1.0")
CONFIGS = {
    ACCOUNTS: (2, ("cleanup.policy=compact", f"delete.retention.ms={2 * DAY_MS}", *ONE_SEGMENT)),
    SENSORS: (SENSOR_PARTS, (f"retention.ms={3 * DAY_MS}", "retention.bytes=100000", *ONE_SEGMENT)),
}


@dataclass
class TopicTraffic:
    kgctl: Kgctl
    random: random.Random = field(default_factory=lambda: random.Random(19))
    # The log start of sensors-0, at first and after each deletion of records.
    starts: list[int] = field(default_factory=lambda: [0])

    def create_topics(self) -> None:
        for topic, (partitions, configs) in CONFIGS.items():
            options = [word for config in configs for word in ("--config", config)]
            done = self.kgctl("topics", "create", topic, "--partitions", partitions, *options)
            assert done.exit_code == 0, done.output
        now_ms = round(time.time() * 1000)
        for part in range(2):
            self._append(ACCOUNTS, part, [(b"gone-1", None), (b"gone-2", None)], now_ms - 5 * DAY_MS)
            for number in range(40):
                self._accounts(part, now_ms - 4 * DAY_MS + number * 2 * HOUR_MS)
        # The second partition stays empty.
        for age_ms in range(40 * DAY_MS, HOUR_MS // 2, -7 * HOUR_MS):
            self._append(SENSORS, 0, [(None, b"x" * 100)], now_ms - age_ms)

    def round(self) -> None:
        now_ms = round(time.time() * 1000)
        for part in range(2):
            for _ in range(5):
                self._accounts(part, now_ms)
        for age_ms in (10 * HOUR_MS, 2 * HOUR_MS, 0):
            self._append(SENSORS, 0, [(b"k", b"y" * self.random.randrange(300))], now_ms - age_ms)

    def delete_records(self) -> None:
        """Records that every reader of the logs has seen."""
        self.starts.append(self.starts[-1] + 3)
        done = self.kgctl("topics", "delete-records", f"{SENSORS}:0:{self.starts[-1]}", "--execute")
        assert done.exit_code == 0, done.output

    def _accounts(self, part: int, at_ms: int) -> None:
        """A batch with keys that repeat, within it too; the values are of one length, so each record has the same size."""
        keys = [
            b"account-%02d-%d" % (int(self.random.paretovariate(0.6)) % 40, part)
            for _ in range(self.random.randrange(1, 30))
        ]
        value = None if self.random.random() < 0.2 else self.random.randbytes(self.random.randrange(200))
        self._append(
            ACCOUNTS, part, [(key, value) for key in keys], at_ms, self.random.choice([Codec.NONE, Codec.ZSTD])
        )

    def _append(
        self,
        topic: str,
        part: int,
        records: list[tuple[bytes | None, bytes | None]],
        at_ms: int,
        codec: Codec = Codec.NONE,
    ) -> None:
        batch = build_batch([Record(n, at_ms, key, value) for n, (key, value) in enumerate(records)], codec=codec)
        with self.kgctl.admin() as admin:
            append(admin, topic, part, batch)
