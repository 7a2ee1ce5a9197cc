"""A class archive is made for the plain class path and kept while it is good; killed attempts leave nothing. No JVM runs."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from kgctl.pipelines.spark import fast_start
from kgctl.pipelines.spark.fast_start import attempts, class_archive
from kgctl.pipelines.spark.java import find_java
from kgctl.pipelines.spark.launcher import Launch, SparkDidNotStart

pytestmark = pytest.mark.skipif(find_spec("pyspark") is None, reason="Spark is not installed")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KGCTL_CACHE", str(tmp_path))
    monkeypatch.setenv(class_archive.SWITCH, "on")
    return tmp_path


@pytest.fixture
def archive(cache: Path) -> Path:
    raw = cache / "raw"
    raw.write_bytes(b"archive " * 1000)
    made = class_archive.keep(raw, cache, find_java())
    assert made is not None
    return made


def start(folder: Path, monkeypatch: pytest.MonkeyPatch, *starts: SparkDidNotStart | None) -> None:
    """A session; each start of the JVM fails with the error or succeeds."""
    outcomes = list(starts)

    def connect(*_: object) -> Any:
        outcome = outcomes.pop(0)
        if outcome is not None:
            raise outcome

    for name, stand_in in (
        ("start_jvm", print),
        ("end_jvm", print),
        ("connect", connect),
        ("_spark_home", lambda _: {}),
    ):
        monkeypatch.setattr(fast_start, name, stand_in)
    monkeypatch.setattr(fast_start, "make_in_background", lambda _: False)
    launch = Launch(java=find_java(), conf={}, environ={}, scratch=folder, log=folder / "spark.log")
    with fast_start.launched(launch, 1.0):
        assert outcomes == []


def test_an_archive_is_kept_if_java_does_not_start_without_it_either(
    archive: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failure = SparkDidNotStart("Unrecognized VM option")
    with pytest.raises(SparkDidNotStart):
        start(cache, monkeypatch, failure, failure)
    assert archive.exists()


def test_an_archive_is_deleted_if_java_starts_only_without_it(
    archive: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start(cache, monkeypatch, SparkDidNotStart("the JVM crashed"), None)
    assert not archive.exists()


def test_what_a_killed_attempt_left_is_deleted_although_an_archive_exists(archive: Path, cache: Path) -> None:
    left = cache / f"{attempts.FOLDER_PREFIX}killed"
    left.mkdir()
    (left / "classes").write_bytes(b"half")
    old = time.time() - 2 * 3600
    os.utime(left, (old, old))
    assert not class_archive.make_in_background(find_java())
    assert not left.exists()
    assert archive.exists()


def test_an_archive_is_made_for_the_class_path_without_additions(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from kgctl.pipelines.spark.fast_start import training

    seen: list[str | None] = []

    @contextlib.contextmanager
    def session(*_: object, **__: object) -> Iterator[None]:
        seen.append(os.environ.get("SPARK_CONF_DIR"))
        yield

    monkeypatch.setattr(training, "open_session", session)
    monkeypatch.setattr(training, "_exercise", lambda *_: None)
    monkeypatch.setenv(fast_start.VARIABLE, "")
    monkeypatch.setenv("SPARK_CONF_DIR", str(cache / "conf"))
    training.make()
    assert seen == [None]
