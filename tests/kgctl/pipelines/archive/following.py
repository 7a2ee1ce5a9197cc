"""A run of `archive` in a thread, without Spark: the same tasks read the records in this process."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from kgctl.client.net.errors import KgctlError
from kgctl.pipelines.archive.files import write_files
from kgctl.pipelines.archive.layout import ArchivedFile
from kgctl.pipelines.archive.reading import named_failures, read_tasks
from kgctl.pipelines.archive.run import run_archive
from kgctl.pipelines.progress import Progress
from kgctl.pipelines.settings import RunSettings
from kgctl.pipelines.source.ranges import OffsetRange
from kgctl.pipelines.source.reading import Patience
from kgctl.pipelines.source.tasks import read_task
from kgctl.pipelines.spark.failures import Interrupted
from tests.kgctl.pipelines.archive.clusters import opened
from tests.kgctl.pipelines.source.topics import Topics


class Following:
    """`before_read` is called each time records are read; a read gives up soon when no broker answers."""

    def __init__(
        self, topics: Topics, out: Path, *names: str, before_read: Callable[[], None] = lambda: None, **changes: Any
    ) -> None:
        self.progress: list[Progress] = []
        self.failure: KgctlError | None = None
        self._stop = threading.Event()
        settings = RunSettings((), topics.bootstrap_servers, str(out), archived=names, follow=True, trigger_s=0.01)
        self._settings = replace(settings, **changes)
        self._before_read = before_read
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        try:
            with contextlib.suppress(Interrupted):
                run_archive(self._settings, self.progress.append, self._stop, opened(self._read))
        except KgctlError as error:
            self.failure = error

    def _read(self, ranges: Sequence[OffsetRange], staging: Path) -> list[ArchivedFile]:
        tasks = [replace(task, patience=Patience(outage=0.1)) for task in read_tasks(self._settings, {}, ranges)]
        with named_failures(self._stop):
            self._before_read()
            return write_files((batch for task in tasks for batch in read_task(task)), staging)

    def __enter__(self) -> Following:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(30)

    def ends(self) -> KgctlError | None:
        """Wait for the end of a run that fails."""
        self._thread.join(30)
        assert not self._thread.is_alive()
        return self.failure

    @property
    def records(self) -> int:
        return max((one.records or 0 for one in self.progress if one.kind == "progress"), default=0)

    @property
    def notes(self) -> list[str]:
        return [one.text for one in self.progress if one.kind == "note"]
